package guard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/dialai/dialai/specialist"
)

// A Classifier asks a model or a service what it thinks of a text.
//
// Classify answers before ctx ends, which it must heed: nothing else stops it.
// It must not keep q. An error and a panic mean that there is no answer, and the
// section's on_error decides. It may be called concurrently.
type Classifier interface {
	Classify(ctx context.Context, q Classification) (ClassifierAnswer, error)
}

// A Classification is one question to a classifier.
type Classification struct {
	Stage string // output or args
	Text  string
	Meta  ClassifierMeta
}

// ClassifierMeta is what a classifier is told beside the text.
type ClassifierMeta struct {
	Task  string
	State string
	Tool  string   // of args
	Model string   // the section's model
	Turns []string // the task's outputs before this one, the oldest first
}

// A ClassifierAnswer is what a classifier says of a text.
type ClassifierAnswer struct {
	Verdict Status
	Score   float64 // from 0 to 1, for people
	Code    string  // its own name of what it found; shown if it is a plain word
	Usage   specialist.Usage
}

// ErrPaused is the error of a classifier that has failed so often that it is not
// asked for a while.
var ErrPaused = errors.New("the classifier has failed too often and is not asked for a while")

// WithClassifier sets who answers for the section classifier.
func WithClassifier(c Classifier) Option { return func(g *Guard) { g.classifier = c } }

// A classifying is what a Guard remembers of its classifier.
type classifying struct {
	mu     sync.Mutex
	failed int64     // in a row
	until  time.Time // it is not asked
	cached map[[sha256.Size]byte]ClassifierAnswer
	order  [][sha256.Size]byte // of cached, a ring
	oldest int
}

// checkClassifier reports whether section and classifier belong together.
func (g *Guard) checkClassifier() error {
	switch {
	case g.config.Classifier != nil && g.classifier == nil:
		return errors.New("the section has a classifier, and none was given: use WithClassifier")
	case g.config.Classifier == nil && g.classifier != nil:
		return errors.New("a classifier was given, and the section has none to say what follows from its errors")
	}
	return nil
}

// classify asks the classifier about every part of a step. The task has an open
// token and is not locked.
func (g *Guard) classify(ctx context.Context, t *task, step *Step) Verdict {
	var reasons []Reason
	t.mu.Lock()
	turns := t.turns
	t.mu.Unlock()
	meta := ClassifierMeta{Task: step.Task, State: step.State, Model: g.config.Classifier.Model, Turns: turns}
	ask := func(stage, text string) {
		a, err := g.answer(ctx, t, Classification{stage, text, meta})
		switch {
		case err != nil:
			reasons = append(reasons, g.config.Classifier.failed(err))
		case a.Verdict > OK:
			reasons = append(reasons, a.reason(stage))
		}
	}
	if step.HasOutput {
		ask("output", step.Output)
	}
	for i := range step.ToolCalls {
		if call := &step.ToolCalls[i]; len(call.Args) > 0 {
			meta.Tool = call.Name
			ask("args", string(call.Args))
		}
	}
	return with(reasons)
}

// failed is the reason if there is no answer: the error itself may quote the
// text, so it is not shown.
func (c *ClassifierConfig) failed(err error) Reason {
	r := Reason{Code: "classifier_error", Guard: "classifier", Class: Warn, Message: "the classifier gave no answer"}
	if c.Closed {
		r.Class = Escalate
	}
	switch {
	case errors.Is(err, ErrPaused):
		r.Message = ErrPaused.Error()
	case errors.Is(err, context.DeadlineExceeded):
		r.Message = fmt.Sprintf("the classifier gave no answer within %v", c.Timeout)
	}
	return r
}

func (a *ClassifierAnswer) reason(stage string) Reason {
	r := Reason{
		Code: "classifier_flagged", Guard: "classifier", Class: a.Verdict, Seen: strconv.FormatFloat(a.Score, 'g', 4, 64),
		Message: fmt.Sprintf("the classifier objects to the %s", map[string]string{"output": "output", "args": "arguments of a tool call"}[stage]),
	}
	if len(a.Code) > 0 && len(a.Code) <= maxName && nameBytes.run(a.Code, 0, maxName) == len(a.Code) {
		r.Subject = a.Code // anything else might be the text
		r.Message += " (" + a.Code + ")"
	}
	return r
}

// answer returns what is known of a text, or asks.
func (g *Guard) answer(ctx context.Context, t *task, q Classification) (ClassifierAnswer, error) {
	key := q.key()
	k := &g.classifying
	k.mu.Lock()
	a, known := k.cached[key]
	now := g.now()
	paused := !known && now.Before(k.until)
	if !known && !paused && k.failed >= g.config.Classifier.Failures {
		k.until = now.Add(g.config.Classifier.Pause) // one may try
	}
	k.mu.Unlock()
	switch {
	case known:
		return a, nil
	case paused:
		return a, ErrPaused
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.Classifier.Timeout)
	defer cancel()
	a, err := g.ask(ctx, q)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	t.mu.Lock()
	t.state = t.state.Charge(a.Usage, "")
	t.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if k.failed++; k.failed >= g.config.Classifier.Failures {
			k.until = g.now().Add(g.config.Classifier.Pause)
		}
		return ClassifierAnswer{}, err
	}
	k.failed, k.until = 0, time.Time{}
	k.keep(key, a, int(g.config.Classifier.Cache))
	return a, nil
}

// ask asks the classifier. A panic, and an answer that is none, are errors; what
// it has cost is in the answer all the same.
func (g *Guard) ask(ctx context.Context, q Classification) (a ClassifierAnswer, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the classifier panicked")
		}
	}()
	a, err = g.classifier.Classify(ctx, q)
	if u := &a.Usage; u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < 0 {
		a.Usage = specialist.Usage{}
		return a, errors.Join(err, errors.New("the usage is negative"))
	}
	if err == nil && (a.Verdict > Abort || !(a.Score >= 0 && a.Score <= 1)) { // NaN is refused too
		err = errors.New("the answer is none")
	}
	return a, err
}

// keep remembers an answer in the place of the oldest one.
func (k *classifying) keep(key [sha256.Size]byte, a ClassifierAnswer, most int) {
	if _, known := k.cached[key]; known || most == 0 {
		return
	}
	if k.cached == nil {
		k.cached = map[[sha256.Size]byte]ClassifierAnswer{}
	}
	a.Usage = specialist.Usage{}
	if k.cached[key] = a; len(k.order) < most {
		k.order = append(k.order, key)
		return
	}
	delete(k.cached, k.order[k.oldest])
	k.order[k.oldest] = key
	k.oldest = (k.oldest + 1) % most
}

// key hashes everything that an answer may depend on, and so not the task.
func (q *Classification) key() (key [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range append([]string{q.Stage, q.Text, q.Meta.State, q.Meta.Tool, q.Meta.Model}, q.Meta.Turns...) {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		_, _ = h.Write([]byte(part))
	}
	h.Sum(key[:0])
	return key
}

// A ClassifierConfig says how a classifier is asked.
type ClassifierConfig struct {
	URL          string        // of a service; "" if the program brings its own
	Model        string        // told to the classifier; may be ""
	TokenName    string        // of the variable that holds the service's token
	Timeout      time.Duration // of one question
	Closed       bool          // without an answer a human must look, or else it is a warning
	Failures     int64         // so many in a row, and it is not asked for Pause
	Pause        time.Duration
	Cache        int64 // answers that are kept
	ContextTurns int64 // outputs before this one that it is shown
}

// classifier reads the section classifier.
func (r *reader) classifier(into **ClassifierConfig) func(path string, value []byte) {
	c := &ClassifierConfig{Failures: 5, Cache: 1024}
	timeout, pause, onError := int64(2000), int64(30_000), ""
	read := r.object("classifier", []member{
		{"url", r.name(&c.URL)},
		{"model", r.name(&c.Model)},
		{"token_name", r.name(&c.TokenName)},
		{"timeout_ms", r.countWithin(&timeout, 1, maxWait)},
		{"on_error", r.oneOf(&onError, "open", "closed")},
		{"breaker", r.object("breaker", []member{
			{"failures", r.countWithin(&c.Failures, 1, math.MaxInt32)},
			{"pause_ms", r.countWithin(&pause, 1, maxWait)},
		})},
		{"cache", r.countWithin(&c.Cache, 0, maxCache)},
		{"context_turns", r.countWithin(&c.ContextTurns, 0, maxTurns)},
	})
	return func(path string, value []byte) {
		read(path, value)
		r.require(path, value, "on_error")
		if c.URL != "" && c.TokenName == "" {
			r.report(path, "missing-field", `"token_name" is missing`, "name the variable that holds the token of the service")
		}
		c.Timeout, c.Pause, c.Closed = time.Duration(timeout)*time.Millisecond, time.Duration(pause)*time.Millisecond, onError == "closed"
		*into = c
	}
}

// Bounds of the section.
const (
	maxWait  = 3_600_000
	maxCache = 1_000_000
	maxTurns = 100
)

// turned remembers an output for the questions about later ones. The task is
// locked.
func (t *task) turned(c *ClassifierConfig, step *Step) {
	if c == nil || c.ContextTurns == 0 || !step.HasOutput {
		return
	}
	if t.turns = append(t.turns, step.Output); int64(len(t.turns)) > c.ContextTurns {
		t.turns = append([]string(nil), t.turns[1:]...) // a question may still hold the old list
	}
}
