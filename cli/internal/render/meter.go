package render

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// What takes long says so on a terminal's stderr, in one line that is written again and
// again and is gone when anything else is printed. There is none where stderr is no
// terminal or a dumb one, and none where JSON or silence was asked for.

// A statusLine is that line. A nil statusLine shows nothing.
type statusLine struct {
	out   io.Writer
	width int                        // of the terminal; the line must not be longer
	now   func() time.Time           // the clock
	text  func(now time.Time) string // what to show; "" shows nothing
	quit  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	shown bool
	held  bool
}

// lineEvery is how often the line is written.
const lineEvery = 200 * time.Millisecond

// newStatusLine returns a line of a screen that shows text from start to stop, nil without
// a screen.
func newStatusLine(screen io.Writer, text func(now time.Time) string) *statusLine {
	if screen == nil {
		return nil
	}
	return &statusLine{out: screen, width: widthOf(screen), now: time.Now, text: text, quit: make(chan struct{})}
}

// start begins to show it.
func (l *statusLine) start() {
	if l != nil {
		l.done.Go(l.run)
	}
}

func (l *statusLine) run() {
	ticker := time.NewTicker(lineEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-ticker.C:
			l.show()
		}
	}
}

func (l *statusLine) show() {
	text := l.text(l.now())
	if text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return
	}
	if runes := []rune(Clean(text)); len(runes) >= l.width {
		text = string(runes[:max(0, l.width-2)]) + "…"
	}
	fmt.Fprintf(l.out, "\r\x1b[K%s", Clean(text))
	l.shown = true
}

// Clear removes the line, so that others can be printed.
func (l *statusLine) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

// Hold removes the line, and shows none until it is released: somebody is typing there.
func (l *statusLine) Hold() (release func()) {
	if l == nil {
		return func() {}
	}
	hold := func(held bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held = held
	}
	hold(true)
	l.Clear()
	return func() { hold(false) }
}

// Stop ends it.
func (l *statusLine) Stop() {
	if l == nil {
		return
	}
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.done.Wait()
	l.Clear()
}

// A meter says how far a long piece of work is: how much is done, how fast, and how long
// the rest takes at that pace. It may be told concurrently.
type meter struct {
	line *statusLine
	now  func() time.Time

	mu          sync.Mutex
	doing, unit string
	began       time.Time // of what is being done
	told        time.Time // when more was done last
	done, total int64     // 0: not known
	more        bool      // other parts follow, of which nobody knows how long they take
}

// meterFor is how long work may take before it is talked about, so that the line is there
// within a second.
const meterFor = 600 * time.Millisecond

// NewMeter begins to measure work that goes by units, as "rounds", and to show it on a
// screen, which may be nil.
func NewMeter(screen io.Writer, doing, unit string) *meter {
	m := &meter{now: time.Now, doing: doing, unit: unit, began: time.Now()}
	m.line = newStatusLine(screen, m.text)
	m.line.start()
	return m
}

// At says how much is done, of how much; of 0 if nobody knows.
func (m *meter) At(done, total int64) { m.Of("", done, total) }

// Of is at for a part of the work, which has a pace of its own.
func (m *meter) Of(doing string, done, total int64) { m.Part(doing, done, total, false) }

// Part is of for a part which others follow, if more says so.
func (m *meter) Part(doing string, done, total int64, more bool) {
	if m.line == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if doing != "" && doing != m.doing {
		m.doing, m.began = doing, m.now()
	}
	if done != m.done {
		m.told = m.now()
	}
	m.done, m.total, m.more = done, total, more
}

// Stop removes the line.
func (m *meter) Stop() { m.line.Stop() }

// text returns the line, "" as long as the work has not taken long.
func (m *meter) text(now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	took := now.Sub(m.began)
	switch {
	case took < meterFor:
		return ""
	case m.done <= 0:
		return fmt.Sprintf("%s (%ds)", m.doing, int(took.Seconds()))
	}
	pace := float64(m.done) / took.Seconds()
	text := fmt.Sprintf("%s: %s %s, %s/s", m.doing, grouped(m.done), m.unit, rate(pace))
	if m.total > 0 {
		text = fmt.Sprintf("%s: %s of %s %s, %s/s", m.doing, grouped(min(m.done, m.total)), grouped(m.total), m.unit, rate(pace))
		rest := time.Duration(float64(max(0, m.total-m.done)) / pace * float64(time.Second))
		if !m.told.IsZero() { // what takes longer than what was before it is probably not half done
			rest = max(rest, now.Sub(m.told))
		}
		text += ", " + left(rest) + When(m.more, " of this part")
	}
	return text
}

// rate writes a pace with as many digits as say something.
func rate(pace float64) string {
	if pace < 10 {
		return strconv.FormatFloat(pace, 'f', 1, 64)
	}
	return grouped(int64(pace))
}

// left says how long something takes yet.
func left(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1s left"
	case d < time.Minute:
		return fmt.Sprintf("about %ds left", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("about %dm left", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("about %.1fh left", d.Hours())
}

// grouped writes a number with a comma before every three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
