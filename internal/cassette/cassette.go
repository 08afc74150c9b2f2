// Package cassette keeps what services and models said in a run, one JSON file for
// each call, so that the run can be shown, tested and shared without keys and
// without a network.
package cassette

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A Run says which run cassettes belong to.
type Run struct {
	Version       int             `json:"version"` // of the format: 1
	MachineName   string          `json:"machineName"`
	MachineDigest string          `json:"machineDigest"`
	Seed          string          `json:"seed"` // a number, as text: it may have 64 bits
	Mode          string          `json:"mode,omitempty"`
	MetaJSON      json.RawMessage `json:"metaJson,omitempty"`
	Note          string          `json:"note,omitempty"` // for people: where they come from
}

// SeedNumber returns the seed; 0 if it is none.
func (r *Run) SeedNumber() uint64 {
	n, _ := strconv.ParseUint(r.Seed, 10, 64)
	return n
}

// runFile is the file of a Run in its folder.
const runFile = "run.json"

// A Call is one call as it is kept.
type Call struct {
	Kind       string          `json:"kind"`
	Specialist string          `json:"specialist,omitempty"`
	State      string          `json:"state,omitempty"`
	Round      int32           `json:"round"`
	Attempt    int32           `json:"attempt,omitempty"`
	Ask        int32           `json:"ask,omitempty"` // how many asks of the specialist came before in the round
	Number     int             `json:"number"`        // among the calls of the same label, from 1
	Request    json.RawMessage `json:"request,omitempty"`
	Status     int             `json:"status,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"` // JSON as it was, else a string
	Error      string          `json:"error,omitempty"`
	Unsent     bool            `json:"unsent,omitempty"` // nothing went out
	Lost       bool            `json:"lost,omitempty"`   // something did, and no answer to it came, or only a part
	Cut        Cut             `json:"cut,omitempty"`    // why nobody waited for it any longer
}

// A Cut says why a call was given up. The zero Cut is one that was not.
type Cut string

// The reasons.
const (
	Decided Cut = "decided" // the round was decided without it
	Late    Cut = "timeout" // its time was over
)

// cutOf returns why a call was given up. ok is false if that says nothing of how the
// run goes, as when it was interrupted.
func cutOf(ctx context.Context, said webhook.Taped) (c Cut, ok bool) {
	switch err := ctx.Err(); {
	case err == nil:
		return "", true
	case errors.Is(context.Cause(ctx), specialist.ErrDecided):
		return Decided, true // even if it was answered meanwhile: that came too late
	case said.Err == nil:
		return "", true
	case errors.Is(err, context.DeadlineExceeded):
		return Late, true
	}
	return "", false
}

// A Deck records or plays the cassettes of one folder. It implements webhook.Tape and
// runner.Arrivals, and may be used concurrently.
type Deck struct {
	dir     string
	playing bool
	run     Run
	order   map[webhook.Label]delivery // in which answers were delivered, without kinds; empty if nothing is known

	arrivals sync.Mutex // held while an answer is noted and delivered

	mu      sync.Mutex
	numbers map[webhook.Label]int  // calls so far
	sent    map[webhook.Label]bool // asks that had one, without kinds
	missing []string
	err     error // the first that a cassette could not be written with
}

// Record returns a Deck that records into a folder, which is made if there is none
// and must be empty if there is.
func Record(dir string, run Run) (*Deck, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		return nil, fmt.Errorf("%s is not empty: name a folder for this run alone", dir)
	}
	run.Version = 1
	d := newDeck(dir)
	d.run = run
	return d, d.write(runFile, run)
}

// Continue returns a Deck that records on into a folder, where calls of the same run
// lie already, such as what came before a person decided; a folder without any is
// that of Record. The error is an *OtherRunError if they are of another run.
func Continue(dir string, run Run) (*Deck, error) {
	if _, err := os.Stat(filepath.Join(dir, runFile)); errors.Is(err, fs.ErrNotExist) {
		return Record(dir, run)
	}
	d, err := Resume(dir, run)
	if err != nil {
		return nil, err
	}
	d.playing = false
	return d, d.repairOrder()
}

// Resume returns a Deck that plays what was recorded of a run into a folder, from
// where a process of it begins. The error is an *OtherRunError if it is of another
// run.
func Resume(dir string, run Run) (*Deck, error) {
	d, err := Play(dir)
	if err != nil {
		return nil, err
	}
	if err := d.run.differs(&run); err != "" {
		return nil, &OtherRunError{dir, err}
	}
	return d, nil
}

// An OtherRunError says that cassettes are of another run than the one at hand.
type OtherRunError struct{ Dir, Why string }

func (e *OtherRunError) Error() string {
	return fmt.Sprintf("the cassettes in %s are of another run: %s", e.Dir, e.Why)
}

// differs says in what two runs differ, "" if they are one.
func (r *Run) differs(other *Run) string {
	switch {
	case r.MachineDigest != other.MachineDigest:
		return fmt.Sprintf("of machine %q with digest %.12s, and not of %q with digest %.12s", r.MachineName, r.MachineDigest, other.MachineName, other.MachineDigest)
	case r.SeedNumber() != other.SeedNumber():
		return fmt.Sprintf("with seed %s, and not %s", r.Seed, other.Seed)
	case r.Mode != other.Mode:
		return fmt.Sprintf("in mode %q, and not %q", r.Mode, other.Mode)
	case tidy(r.MetaJSON) != tidy(other.MetaJSON):
		return fmt.Sprintf("with metaJson %s, and not %s", tidy(r.MetaJSON), tidy(other.MetaJSON))
	}
	return ""
}

// tidy returns a JSON value without white space, so that it can be compared and
// read; nothing is {}.
func tidy(value json.RawMessage) string {
	if len(value) == 0 {
		return "{}"
	}
	text, err := jsontext.Tidy(value)
	if err != nil {
		return string(value)
	}
	return string(text)
}

// Play returns a Deck that plays what was recorded into a folder. Names in it that hold
// what cannot be seen (see machine.Hidden) are an error, there or where they are read.
func Play(dir string) (*Deck, error) {
	data, err := files.ReadRegular(filepath.Join(dir, runFile), files.Cassette)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there are no cassettes in %s: it has no %s", dir, runFile)
	}
	if err != nil {
		return nil, err
	}
	d := newDeck(dir)
	d.playing = true
	if err := json.Unmarshal(data, &d.run); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, runFile), err)
	}
	if d.run.Version != 1 {
		return nil, fmt.Errorf("the cassettes in %s have version %d, and this program plays version 1", dir, d.run.Version)
	}
	if err := seen("machineName", d.run.MachineName, "seed", d.run.Seed, "mode", d.run.Mode); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, runFile), err)
	}
	if err := d.readOrder(); err != nil {
		return nil, err
	}
	return d, nil
}

// seen refuses names that hold what cannot be seen, as files of machines do: members and
// their values, in turn.
func seen(members ...string) error {
	for i := 0; i < len(members); i += 2 {
		if r, at := machine.Hidden(members[i+1]); at > 0 {
			return fmt.Errorf("%s holds U+%04X as character %d, which cannot be seen: write it anew, or record the run again", members[i], r, at)
		}
	}
	return nil
}

func newDeck(dir string) *Deck {
	return &Deck{dir: dir, order: map[webhook.Label]delivery{}, numbers: map[webhook.Label]int{}, sent: map[webhook.Label]bool{}}
}

// Run returns which run the cassettes belong to.
func (d *Deck) Run() Run { return d.run }

// Playing implements webhook.Tape.
func (d *Deck) Playing() bool { return d.playing }

// Err returns what a run on the Deck lacked: cassettes that are missing, or the
// first one that could not be written. Nil if nothing.
func (d *Deck) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return d.err
	case len(d.missing) > 0:
		return &MissingError{d.dir, d.missing}
	}
	return nil
}

// A MissingError says which calls of a run have no cassette.
type MissingError struct {
	Dir   string
	Calls []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("no cassette in %s for %s", e.Dir, strings.Join(e.Calls, "; "))
}

// Exchange implements webhook.Tape. A call that was given up because its round was
// decided, or its time over, is given up again when it is played: at the end of ctx, or
// at once. One that was interrupted is not kept.
func (d *Deck) Exchange(ctx context.Context, l webhook.Label, request []byte, send func() webhook.Taped) webhook.Taped {
	n := d.next(l)
	if d.playing {
		return d.play(ctx, l, n)
	}
	said := send()
	if cut, ok := cutOf(ctx, said); ok {
		d.keep(l, n, request, said, cut)
	}
	return said
}

func (d *Deck) next(l webhook.Label) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.numbers[l]++
	ask := l
	ask.Kind = ""
	d.sent[ask] = true
	return d.numbers[l]
}

func (d *Deck) play(ctx context.Context, l webhook.Label, n int) webhook.Taped {
	data, err := files.ReadRegular(filepath.Join(d.dir, fileName(l, n)), files.Cassette)
	switch absent := errors.Is(err, fs.ErrNotExist); {
	case absent && d.unsent(l) != "":
		return webhook.Taped{Err: givenUp(ctx, d.unsent(l)), Unsent: true, Body: []byte(`{"calls":0}`)} // so a model costs nothing either
	case absent:
		call := describe(l, n)
		d.mu.Lock()
		d.missing = append(d.missing, call)
		d.mu.Unlock()
		return webhook.Taped{Err: &MissingError{d.dir, []string{call}}}
	}
	var c Call
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil {
		err = seen("kind", c.Kind, "specialist", c.Specialist, "state", c.State)
	}
	if err != nil {
		return webhook.Taped{Err: fmt.Errorf("cassette %s: %w", fileName(l, n), err)}
	}
	said := webhook.Taped{Status: c.Status, Body: c.Answer, Unsent: c.Unsent, Lost: c.Lost}
	var text string
	if json.Unmarshal(c.Answer, &text) == nil {
		said.Body = []byte(text)
	}
	if c.Error != "" {
		said.Err = errors.New(c.Error)
	}
	if c.Cut != "" {
		if err := givenUp(ctx, c.Cut); said.Err != nil || c.Cut == Late {
			said.Err = err
		}
	}
	return said
}

func (d *Deck) keep(l webhook.Label, n int, request []byte, said webhook.Taped, cut Cut) {
	c := Call{Kind: l.Kind, Specialist: l.Specialist, State: l.State, Round: l.Round, Attempt: l.Attempt, Ask: l.Ask, Number: n,
		Request: asJSON(request), Status: said.Status, Answer: asJSON(said.Body), Unsent: said.Unsent, Lost: said.Lost, Cut: cut}
	if said.Err != nil {
		c.Error = said.Err.Error()
	}
	if err := d.write(fileName(l, n), c); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.err == nil {
			d.err = err
		}
	}
}

// asJSON returns an object or a list as it is, and everything else as a string:
// so a string is told from a body that was one.
func asJSON(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(string(body)) // any string can be
	return text
}

func (d *Deck) write(name string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, name), b.Bytes(), 0o644)
}

// describe names a call for people.
func describe(l webhook.Label, n int) string {
	again := ""
	if l.Ask > 0 {
		again = fmt.Sprintf(", asked %d times before", l.Ask)
	}
	return fmt.Sprintf("call %d of kind %s of %q in round %d, attempt %d, state %q%s", n, l.Kind, l.Specialist, l.Round, l.Attempt, l.State, again)
}

// plainName is what of a name can stand in that of a file.
var plainName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// fileName returns the file of a call: different calls have different ones.
func fileName(l webhook.Label, n int) string {
	plain := func(s string) string {
		p := plainName.ReplaceAllString(s, "_")
		if p == s && len(p) <= 40 {
			return p
		}
		sum := sha256.Sum256([]byte(s))
		return p[:min(len(p), 32)] + "." + hex.EncodeToString(sum[:4])
	}
	number := strconv.Itoa(n)
	if l.Ask > 0 {
		number = fmt.Sprintf("%d.%d", l.Ask+1, n)
	}
	return fmt.Sprintf("r%03d.%d-%s-%s-%s-%s.json", l.Round, l.Attempt, plain(l.State), plain(l.Specialist), plain(l.Kind), number)
}
