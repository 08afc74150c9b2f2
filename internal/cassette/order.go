package cassette

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// In which order answers were delivered, so that a round of specialists who are asked at
// once comes out the same when it is played. While a Deck records, answers are delivered
// one at a time, and each is noted in the folder before it is. While it plays, an answer
// waits for the one that came before it then, or for the end of the round.
//
// An answer of which nothing is noted is not held back. A last line that was cut off by
// a crash counts as never written, and is cut off before another is written behind it.

// orderFile is where a folder says in which order answers were delivered: a line for each,
// as JSON.
const orderFile = "order.jsonl"

// An Arrival is one answer that was delivered, or one specialist who was given up.
type Arrival struct {
	Specialist string `json:"specialist"`
	State      string `json:"state"`
	Round      int32  `json:"round"`
	Attempt    int32  `json:"attempt,omitempty"`
	Ask        int32  `json:"ask,omitempty"`    // how many asks of the specialist came before in the round
	Unsent     Cut    `json:"unsent,omitempty"` // why it was given up before anybody was asked
}

// label returns which ask it was, without a kind.
func (a *Arrival) label() webhook.Label {
	return webhook.Label{Specialist: a.Specialist, State: a.State, Round: a.Round, Attempt: a.Attempt, Ask: a.Ask}
}

// A delivery says when an ask was delivered, among all of its folder.
type delivery struct {
	number int
	unsent Cut
}

// readOrder reads what is known of the order of a folder, which may be nothing. Of an ask
// that was repeated because its process was lost, the last time counts. A last line that
// was cut off when the computer failed is as if it had not been begun: see repairOrder.
func (d *Deck) readOrder() error {
	data, err := files.ReadRegular(filepath.Join(d.dir, orderFile), files.Order)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(wholeLines(data)))
	for n := 1; lines.Scan(); n++ {
		var a Arrival
		err := json.Unmarshal(lines.Bytes(), &a)
		if err == nil {
			err = seen("specialist", a.Specialist, "state", a.State)
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", filepath.Join(d.dir, orderFile), n, err)
		}
		d.order[a.label()] = delivery{n, a.Unsent}
	}
	return lines.Err()
}

// wholeLines returns the lines that have an end.
func wholeLines(data []byte) []byte { return data[:bytes.LastIndexByte(data, '\n')+1] }

// repairOrder cuts off a line that has no end, before others are written behind it.
func (d *Deck) repairOrder() error {
	name := filepath.Join(d.dir, orderFile)
	data, err := files.ReadRegular(name, files.Order)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if whole := len(wholeLines(data)); err == nil && whole < len(data) {
		err = os.Truncate(name, int64(whole))
	}
	return err
}

// Together implements runner.Arrivals. While it records, answers are delivered one after the
// other, and the folder says in which order. While it plays, they are delivered in that order;
// those of which it is not known, as those of old cassettes, are not held back.
func (d *Deck) Together(asked []specialist.Caller) func(ctx context.Context, place int, deliver func()) {
	labels := make([]webhook.Label, len(asked))
	for i, c := range asked {
		labels[i] = webhook.Label{Specialist: c.SpecialistID, State: c.State, Round: c.Round, Attempt: c.Attempt, Ask: c.Nth}
	}
	if d.playing {
		return d.inOrder(labels)
	}
	return func(ctx context.Context, place int, deliver func()) {
		d.arrivals.Lock()
		defer d.arrivals.Unlock()
		d.note(ctx, labels[place])
		deliver()
	}
}

// note says in the folder that an answer is delivered.
func (d *Deck) note(ctx context.Context, l webhook.Label) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := Arrival{Specialist: l.Specialist, State: l.State, Round: l.Round, Attempt: l.Attempt, Ask: l.Ask}
	if !d.sent[l] {
		a.Unsent, _ = cutOf(ctx, webhook.Taped{Err: ctx.Err()})
	}
	line, _ := json.Marshal(a) // cannot fail
	f, err := os.OpenFile(filepath.Join(d.dir, orderFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Close())
	}
	if d.err == nil {
		d.err = err
	}
}

// inOrder returns what has answers delivered in the order of the folder.
func (d *Deck) inOrder(labels []webhook.Label) func(ctx context.Context, place int, deliver func()) {
	var known []int
	for i, l := range labels {
		if _, ok := d.order[l]; ok {
			known = append(known, i)
		}
	}
	slices.SortFunc(known, func(a, b int) int { return cmp.Compare(d.order[labels[a]].number, d.order[labels[b]].number) })
	delivered := make([]chan struct{}, len(labels)) // closed once it was
	before := make([]<-chan struct{}, len(labels))
	open := make(chan struct{})
	close(open)
	for i := range labels {
		delivered[i], before[i] = make(chan struct{}), open
	}
	for i := 1; i < len(known); i++ {
		before[known[i]] = delivered[known[i-1]]
	}
	var one sync.Mutex
	return func(ctx context.Context, place int, deliver func()) {
		select {
		case <-before[place]:
		case <-ctx.Done(): // the round is over, whoever comes next
		}
		one.Lock()
		defer one.Unlock()
		deliver()
		close(delivered[place])
	}
}

// unsent returns why a call that has no cassette was never made: its round was over
// before it was its turn. The zero Cut says that it was made.
func (d *Deck) unsent(l webhook.Label) Cut {
	l.Kind = ""
	return d.order[l].unsent
}

// givenUp gives a call up as it was before: at the end of ctx, or at once because it was
// late.
func givenUp(ctx context.Context, cut Cut) error {
	if cut == Late {
		return context.DeadlineExceeded
	}
	<-ctx.Done()
	return ctx.Err()
}
