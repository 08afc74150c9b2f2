package guard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// Asking a classifier about a step, as seldom as will do. Judge puts the output and then
// the arguments of each tool call. For each, the cache answers first: its key is a hash
// of all that an answer may depend on, and it keeps the newest answers up to the number
// that the section gives. What is not known is asked.
//
// After so many failures in a row as the section allows, nobody is asked until the pause
// is over (a circuit breaker); then one question may try, and while it is out the pause
// goes on for the others. A success ends it. A question that was never sent
// (ErrNotAsked) is no failure. A missing answer is a warning, or sends the step to a
// human if the section is closed; it never passes as an answer.

// ErrPaused is the error of a classifier that has failed so often that it is not
// asked for a while.
var ErrPaused = errors.New("the classifier has failed too often and is not asked for a while")

// ErrNotAsked is the error of a question that never reached the classifier, for
// reasons that are not the classifier's: it says nothing of how well that is.
var ErrNotAsked = errors.New("the classifier was not asked")

// An Asker judges steps by what a classifier says of their parts: it knows what
// was asked before and leaves a classifier alone that keeps failing. It may be
// used concurrently.
type Asker struct {
	config *ClassifierConfig
	now    func() time.Time

	mu     sync.Mutex
	failed int64     // in a row
	until  time.Time // it is not asked
	cached map[[sha256.Size]byte]ClassifierAnswer
	order  [][sha256.Size]byte // of cached, a ring
	oldest int
}

// NewAsker returns an Asker that remembers nothing yet. now is the clock.
func NewAsker(c *ClassifierConfig, now func() time.Time) *Asker { return &Asker{config: c, now: now} }

// Judge returns the verdict on a step: its output and the arguments of each of
// its tool calls are put to ask, where memory does not answer. turns are the
// outputs before this one. An error of ask means what on_error says; one that is
// [ErrNotAsked] does not count as a failure of the classifier.
func (k *Asker) Judge(ctx context.Context, step verdict.Step, turns []string, ask func(context.Context, Classification) (ClassifierAnswer, error)) verdict.Verdict {
	return k.judge(ctx, step, turns, ask, false)
}

// JudgeAnew is Judge without memory: a step is asked about that was asked about
// before, and whose answer was lost. The question, which the classifier may have been
// paid for, is then asked again, whatever others have asked meanwhile.
func (k *Asker) JudgeAnew(ctx context.Context, step verdict.Step, turns []string, ask func(context.Context, Classification) (ClassifierAnswer, error)) verdict.Verdict {
	return k.judge(ctx, step, turns, ask, true)
}

func (k *Asker) judge(ctx context.Context, step verdict.Step, turns []string, ask func(context.Context, Classification) (ClassifierAnswer, error), anew bool) verdict.Verdict {
	var reasons []verdict.Reason
	meta := ClassifierMeta{Task: step.Task, State: step.State, Model: k.config.Model, Turns: turns}
	put := func(stage, text string) {
		a, err := k.answer(ctx, Classification{stage, text, meta}, ask, anew)
		switch {
		case err != nil:
			reasons = append(reasons, k.config.failed(err))
		case a.Verdict > verdict.OK:
			reasons = append(reasons, a.reason(stage))
		}
	}
	if step.HasOutput {
		put("output", step.Output)
	}
	for i := range step.ToolCalls {
		if call := &step.ToolCalls[i]; len(call.Args) > 0 {
			meta.Tool = call.Name
			put("args", string(call.Args))
		}
	}
	return verdict.Of(reasons)
}

// failed is the reason if there is no answer: the error itself may quote the
// text, so it is not shown.
func (c *ClassifierConfig) failed(err error) verdict.Reason {
	r := verdict.Reason{Code: "classifier_error", Guard: "classifier", Class: verdict.Warn, Message: "the classifier gave no answer"}
	if c.Closed {
		r.Class = verdict.Escalate
	}
	switch {
	case errors.Is(err, ErrPaused):
		r.Message = ErrPaused.Error()
	case errors.Is(err, context.DeadlineExceeded):
		r.Message = fmt.Sprintf("the classifier gave no answer within %v", c.Timeout)
	}
	return r
}

// A subject that a classifier names has at most so many bytes, of these.
const (
	maxSubject   = 64
	subjectBytes = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"
)

func (a *ClassifierAnswer) reason(stage string) verdict.Reason {
	r := verdict.Reason{
		Code: "classifier_flagged", Guard: "classifier", Class: a.Verdict, Seen: strconv.FormatFloat(a.Score, 'g', 4, 64),
		Message: fmt.Sprintf("the classifier objects to the %s", map[string]string{"output": "output", "args": "arguments of a tool call"}[stage]),
	}
	if len(a.Code) > 0 && len(a.Code) <= maxSubject && strings.Trim(a.Code, subjectBytes) == "" {
		r.Subject = a.Code // anything else might be the text
		r.Message += " (" + a.Code + ")"
	}
	return r
}

// answer returns what is known of a text, or asks.
func (k *Asker) answer(ctx context.Context, q Classification, ask func(context.Context, Classification) (ClassifierAnswer, error), anew bool) (ClassifierAnswer, error) {
	key := q.key()
	a, known, paused := k.recall(key, anew)
	switch {
	case known:
		return a, nil
	case paused:
		return a, ErrPaused
	}
	a, err := ask(ctx, q)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, ErrNotAsked):
		return ClassifierAnswer{}, err
	case err != nil:
		if k.failed++; k.failed >= k.config.Failures {
			k.until = k.now().Add(k.config.Pause)
		}
		return ClassifierAnswer{}, err
	}
	k.failed, k.until = 0, time.Time{}
	k.keep(key, a, int(k.config.Cache))
	return a, nil
}

// recall returns what was answered, unless it is asked anew. paused says that nobody may
// ask now: after a pause one may try.
func (k *Asker) recall(key [sha256.Size]byte, anew bool) (a ClassifierAnswer, known, paused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, known = k.cached[key]; known && !anew {
		return a, true, false
	}
	now := k.now()
	if paused = now.Before(k.until); !paused && k.failed >= k.config.Failures {
		k.until = now.Add(k.config.Pause)
	}
	return ClassifierAnswer{}, false, paused
}

// Ask puts one question to a classifier and waits no longer than the section
// says. A panic, and an answer that is none, are errors; what it has cost is in
// the answer all the same.
func (c *ClassifierConfig) Ask(ctx context.Context, by Classifier, q Classification) (a ClassifierAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if recover() != nil {
			err = errors.New("the classifier panicked")
		}
	}()
	a, err = by.Classify(ctx, q)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if u := &a.Usage; u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < 0 {
		a.Usage = specialist.Usage{}
		return a, errors.Join(err, errors.New("the usage is negative"))
	}
	if err == nil && (a.Verdict > verdict.Abort || !(a.Score >= 0 && a.Score <= 1)) { // NaN is refused too
		err = errors.New("the answer is none")
	}
	return a, err
}

// keep remembers an answer in the place of the oldest one.
func (k *Asker) keep(key [sha256.Size]byte, a ClassifierAnswer, most int) {
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

// Digest returns a short name of the question: equal ones have the same.
func (q *Classification) Digest() string {
	key := q.key()
	return hex.EncodeToString(key[:16])
}
