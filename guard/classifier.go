package guard

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// The section classifier: a service or a function that says what it thinks of outputs
// and arguments. This file reads the section and says what a classifier promises; how
// it is asked, with a cache and a breaker, is in classifier_ask.go. It is asked only of
// what the other checks let pass. Where there is no answer on_error decides: open
// warns, closed has a human look. The answers of earlier outputs are kept for the
// questions about later ones, as many as context_turns.

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
	Verdict verdict.Status
	Score   float64 // from 0 to 1, for people
	Code    string  // its own name of what it found; shown if it is a plain word
	Usage   specialist.Usage
}

// WithClassifier sets who answers for the section classifier.
func WithClassifier(c Classifier) Option { return func(g *Guard) { g.classifier = c } }

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
func (g *Guard) classify(ctx context.Context, t *task, step *verdict.Step) verdict.Verdict {
	t.mu.Lock()
	turns := t.turns
	t.mu.Unlock()
	return g.asker.Judge(ctx, *step, turns, func(ctx context.Context, q Classification) (ClassifierAnswer, error) {
		a, err := g.config.Classifier.Ask(ctx, g.classifier, q)
		t.mu.Lock()
		t.state = t.state.Charge(a.Usage, "")
		t.mu.Unlock()
		return a, err
	})
}

// A ClassifierConfig says how a classifier is asked.
type ClassifierConfig struct {
	URL          string        // of a service; "" if the program brings its own
	Function     string        // in machines: the name of one of the program's own; "" with a URL
	Model        string        // told to the classifier; may be ""
	TokenName    string        // of the variable that holds the service's token
	Timeout      time.Duration // of one question
	Closed       bool          // without an answer a human must look, or else it is a warning
	Failures     int64         // so many in a row, and it is not asked for Pause
	Pause        time.Duration
	Cache        int64 // answers that are kept
	ContextTurns int64 // outputs before this one that it is shown
}

// readClassifier reads the section classifier. In a machine it says who is asked,
// and false and null switch it off.
func readClassifier(r *section.Reader, into **ClassifierConfig, of owner) func(path string, value []byte) {
	c := &ClassifierConfig{Failures: 5, Cache: 1024}
	timeout, pause, onError := int64(2000), int64(30_000), ""
	members := []section.Member{
		{Name: "url", Read: r.URL(&c.URL)},
		{Name: "model", Read: packs.ModelName(r, &c.Model)},
		{Name: "token_name", Read: r.Name(&c.TokenName)},
		{Name: "timeout_ms", Read: r.CountWithin(&timeout, 1, maxWait)},
		{Name: "on_error", Read: r.OneOf(&onError, "open", "closed")},
		{Name: "breaker", Read: r.Object([]section.Member{
			{Name: "failures", Read: r.CountWithin(&c.Failures, 1, math.MaxInt32)},
			{Name: "pause_ms", Read: r.CountWithin(&pause, 1, maxWait)},
		})},
		{Name: "cache", Read: r.CountWithin(&c.Cache, 0, maxCache)},
		{Name: "context_turns", Read: r.CountWithin(&c.ContextTurns, 0, maxTurns)},
	}
	if of != aGuards {
		members = append(members, section.Member{Name: "function", Read: r.Name(&c.Function)})
	}
	read := r.Object(members)
	return r.OrOff(func(path string, value []byte) {
		read(path, value)
		if of != aState { // a state's section takes the rest from the machine's
			r.Require(path, value, "on_error")
			checkAskable(r, path, c, of)
		}
		c.Timeout, c.Pause, c.Closed = time.Duration(timeout)*time.Millisecond, time.Duration(pause)*time.Millisecond, onError == "closed"
		*into = c
	}, func() { *into = nil })
}

// checkAskable reports what is missing to ask a classifier.
func checkAskable(r *section.Reader, path string, c *ClassifierConfig, of owner) {
	switch {
	case c.URL != "" && c.TokenName == "":
		r.Report(path, "missing-field", `"token_name" is missing`, "name the variable that holds the token of the service")
	case c.URL != "" && c.Function != "":
		r.Report(path, "contradiction", "both url and function are given, and only one classifier is asked", "keep one of them")
	case of != aGuards && c.URL == "" && c.Function == "":
		r.Report(path, "missing-field", "there is nobody to ask: neither url nor function is given", "name the url of a service, or a function of the program")
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
func (t *task) turned(c *ClassifierConfig, step *verdict.Step) {
	if c == nil || c.ContextTurns == 0 || !step.HasOutput {
		return
	}
	if t.turns = append(t.turns, step.Output); int64(len(t.turns)) > c.ContextTurns {
		t.turns = append([]string(nil), t.turns[1:]...) // a question may still hold the old list
	}
}
