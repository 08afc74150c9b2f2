package permit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Each prompt is a session of the machine of permissions, and its outcome the answer. What
// makes that safe is that a prompt and its sessions know each other without an index: the id
// of a session follows from what the prompt asks (the digest of its input), from the agent's
// own session, and from how often that was asked before. So whoever asks again finds the
// session that is open, or was answered in the meantime, also in another process and after a
// crash, and two who ask the same at once find the same one.
//
// Nobody's silence allows. Whatever goes wrong is an error or no answer, and whoever gets
// that has nothing to show to the agent.

// A Behavior is how a prompt is answered.
type Behavior string

// The behaviors. The zero Behavior is no answer: the prompt is parked, or its session was
// stopped, and the agent may ask again.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
)

// An Answer is what came of a prompt. The zero Answer is none.
type Answer struct {
	Behavior Behavior
	Message  string          // of a refusal, or why there is no answer
	Answers  json.RawMessage // to the questions of a prompt of the kind question; nil for others
	Session  specialist.SessionID
}

// An Unanswered is what is done with a prompt that nobody has answered for a while.
type Unanswered string

// What is done: wait for ever, refuse and stop the session, or leave the question and tell
// the agent that there is no answer yet.
const (
	Wait   Unanswered = "wait"
	Refuse Unanswered = "deny"
	Park   Unanswered = "park"
)

// allowedFor is how long an allowed session may be used.
const allowedFor = 24 * time.Hour

// A Config is what prompts are decided with. It may be used concurrently.
type Config struct {
	Runner     *runner.Runner
	Machine    *machine.Machine // of permissions: its sessions end with allow, answer or deny
	Settings   Settings         // Secret is not read: it follows from that of the store
	Actor      *session.Actor   // who starts and stops the sessions
	Now        func() time.Time // nil means time.Now
	Unanswered Unanswered       // the zero value is Park
	After      time.Duration    // from when a human is waited for; 0 is at once
	// Waits, if it is not nil, is called once when a human is waited for.
	Waits func(*session.Session)
}

// Ask answers a prompt. If ctx ends while a human is waited for, the prompt is withdrawn: unless
// another one waits for it, its session is stopped, and a later ruling is not delivered. After an error, and with an Answer
// that has no Behavior, nothing is allowed.
func (c Config) Ask(ctx context.Context, p Prompt) (Answer, error) {
	secret, err := c.Runner.Store().Secret(ctx)
	if err != nil {
		return Answer{}, err
	}
	c.Settings.Secret = derive(secret, "the secret of input digests")
	if c.Now == nil {
		c.Now = time.Now
	}
	if p.AskedAt.IsZero() {
		p.AskedAt = c.Now()
	}
	f, err := lookAt(p, c.Settings)
	if err != nil {
		return Answer{}, err
	}
	a := asking{Config: c, prompt: p, facts: f, ids: derive(secret, "the ids of permissions\n"+f.InputDigest+"\n"+p.AgentSession), own: rand.Text()}
	for {
		s, err := a.join(ctx)
		if err != nil {
			return Answer{}, err
		}
		answer, err := a.settle(ctx, s)
		if !errors.Is(err, errUsed) {
			return answer, err
		}
	}
}

// derive makes a secret of another.
func derive(secret []byte, what string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("dialai permit: " + what))
	return mac.Sum(nil)
}

// An asking is one prompt while it is answered.
type asking struct {
	Config
	prompt Prompt
	facts  facts
	ids    []byte // from which the ids of its sessions are made
	own    string // who asks, among all who wait for the same
}

// errUsed says that another has used what was allowed.
var errUsed = errors.New("the permission was used")

// id is that of the n-th session about the prompt, a UUID of version 8.
func (a *asking) id(n uint64) (id specialist.SessionID) {
	mac := hmac.New(sha256.New, a.ids)
	_ = binary.Write(mac, binary.BigEndian, n) // a hash takes all
	copy(id[:], mac.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// join returns the session that the prompt belongs to: the newest about it if that is still
// good for an answer, else one that it starts.
func (a *asking) join(ctx context.Context) (*session.Session, error) {
	for {
		n, newest, err := a.newest(ctx)
		if err != nil {
			return nil, err
		}
		if newest != nil {
			over, err := a.over(ctx, newest)
			switch {
			case errors.Is(err, runner.ErrNotRunning): // it has just been answered
				continue
			case err != nil || !over:
				return newest, err
			}
		}
		s, err := a.start(ctx, a.id(n))
		if !errors.Is(err, session.ErrExists) { // else another has started it
			return s, err
		}
	}
}

// newest returns the newest session about the prompt, nil if there is none, and how many
// there are. It looks for the end by doubling steps, then halves the last.
func (a *asking) newest(ctx context.Context) (n uint64, newest *session.Session, err error) {
	there := func(i uint64) (bool, error) {
		s, err := a.Runner.Session(ctx, a.id(i))
		if errors.Is(err, session.ErrNotFound) {
			return false, nil
		}
		if err == nil && i+1 > n {
			n, newest = i+1, s
		}
		return err == nil, err
	}
	end := uint64(0) // not there
	for step := uint64(1); ; step *= 2 {
		ok, err := there(end)
		if err != nil {
			return 0, nil, err
		}
		if !ok {
			break
		}
		end += step
	}
	for n < end {
		mid := n + (end-n)/2
		ok, err := there(mid)
		switch {
		case err != nil:
			return 0, nil, err
		case !ok:
			end = mid
		}
	}
	return n, newest, nil
}

// over reports whether a session is no longer good for an answer. One that was started when
// other patterns were listed, which would decide otherwise now, is not, and neither is one that
// was stopped and taken up again: nobody waits for what comes of it. If it is open, it is stopped.
func (a *asking) over(ctx context.Context, s *session.Session) (bool, error) {
	meta, err := metaOf(s)
	if err != nil {
		return false, err
	}
	stale := meta.Listed != a.facts.Listed || s.Resumes > 0
	switch s.Status {
	case session.Running, session.NeedsHuman:
		if !stale {
			return false, nil
		}
		return true, a.stop(ctx, s, "asked anew")
	case session.Completed:
		if !allows(s) || stale || a.expired(s) {
			return true, nil
		}
		used, err := a.log(ctx, s.ID)
		return used.permission, err
	}
	return true, nil
}

// maxShown is how much of a tool's input a session keeps, in bytes; of a longer one it keeps
// the beginnings of its texts, and says so. The digest is always of all of it.
const maxShown = 128 << 10

// start starts a session about the prompt.
func (a *asking) start(ctx context.Context, id specialist.SessionID) (*session.Session, error) {
	input, err := shorten(a.facts.Input, maxShown)
	if err != nil {
		return nil, err
	}
	suggestions := a.prompt.Suggestions
	if len(suggestions) > 0 { // they repeat the input
		if suggestions, err = shorten(masked(suggestions, tools[a.prompt.Tool] == kindShell), maxShown/4); err != nil {
			return nil, err
		}
	}
	kept := ""
	if len(input) < len(a.facts.Input) {
		kept = fmt.Sprintf("the beginning of %d bytes", len(a.prompt.Input))
	}
	meta, err := jsontext.Marshal(struct {
		Agent        string          `json:"agent"`
		AgentSession string          `json:"agentSession"`
		Undertaking  string          `json:"undertaking,omitempty"`
		Tool         string          `json:"tool"`
		Kind         string          `json:"kind"`
		Listed       string          `json:"listed"`
		Input        json.RawMessage `json:"input"`
		InputKept    string          `json:"inputKept,omitempty"`
		InputDigest  string          `json:"inputDigest"`
		Cwd          string          `json:"cwd"`
		Inside       bool            `json:"inside"`
		ReadOnly     bool            `json:"readOnly"`
		BlockedPath  string          `json:"blockedPath,omitempty"`
		Suggestions  json.RawMessage `json:"suggestions,omitempty"`
		AskedAt      specialist.Time `json:"askedAt"`
	}{a.prompt.Agent, a.prompt.AgentSession, a.prompt.Undertaking, a.prompt.Tool, a.facts.Kind, a.facts.Listed, input, kept, a.facts.InputDigest, a.prompt.Cwd, a.facts.Inside, a.facts.ReadOnly, a.prompt.BlockedPath, suggestions, specialist.TimeOf(a.prompt.AskedAt)})
	if err != nil {
		return nil, err
	}
	m := a.Machine
	if a.facts.Kind == kindQuestion {
		m = answering(m, questionsOf(input))
	}
	s, err := a.Runner.Start(ctx, m, runner.StartOptions{ID: id, Meta: meta, Actor: a.Actor})
	if err != nil && !errors.Is(err, session.ErrExists) {
		return nil, fmt.Errorf("the permission prompt for %s starts no session: %w", a.prompt.Tool, err)
	}
	return s, err
}

// settle waits until there is an answer, or none is waited for any more.
func (a *asking) settle(ctx context.Context, s *session.Session) (Answer, error) {
	if err := a.about(s); err != nil {
		return Answer{}, err
	}
	s, err := a.await(ctx, s)
	switch {
	case err == nil:
	case errors.Is(err, errNobody):
		return a.unanswered(ctx, s)
	case ctx.Err() != nil:
		_ = a.leave(ctx, s, "withdrawn") // or it has ended
		return Answer{}, err
	default:
		return Answer{}, err
	}
	switch {
	case allows(s):
		return a.use(ctx, s)
	case s.Status == session.Completed:
		return Answer{Deny, a.refusal(s), nil, s.ID}, nil
	}
	return Answer{Message: fmt.Sprintf("session %s is %s: %s", s.ID, s.Status, s.Outcome().Reason), Session: s.ID}, nil
}

// refusal is what the agent is told of a session that has ended with a refusal.
func (a *asking) refusal(s *session.Session) string {
	by := s.Last()
	message, _ := payload(s)["message"].(string)
	switch {
	case message != "":
		return message
	case by.IsHuman:
		if by.Reasoning != "" && by.Reasoning != session.HumanOverride {
			return by.Reasoning
		}
		return "denied by " + by.SpecialistID
	case a.facts.Listed == string(Deny):
		return "a pattern denies this"
	}
	return "denied by " + by.SpecialistID + ", whom the record trusts with it"
}

// about returns an error unless a session is about exactly this prompt.
func (a *asking) about(s *session.Session) error {
	meta, err := metaOf(s)
	if err != nil || s.Machine().Name() != a.Machine.Name() || !hmac.Equal([]byte(meta.InputDigest), []byte(a.facts.InputDigest)) || meta.AgentSession != a.prompt.AgentSession {
		return fmt.Errorf("session %s is not about this prompt", s.ID)
	}
	return nil
}

// A prompted is what the metaJson of a session says of its prompt.
type prompted struct{ InputDigest, AgentSession, Listed string }

func metaOf(s *session.Session) (p prompted, err error) {
	return p, json.Unmarshal(s.Options().Meta, &p)
}

// errNobody says that nobody has answered in time.
var errNobody = errors.New("nobody has answered yet")

// await carries a session on until it has ended, or nobody has answered in time.
func (a *asking) await(ctx context.Context, s *session.Session) (*session.Session, error) {
	patient := ctx
	if a.Unanswered != Wait {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeoutCause(ctx, a.After, errNobody)
		defer cancel()
	}
	told := func(s *session.Session) error {
		if a.Unanswered != Wait && a.After <= 0 {
			return errNobody
		}
		if _, err := a.waits(ctx, s.ID, false); err != nil {
			return err
		}
		if a.Waits != nil {
			a.Waits(s)
		}
		return nil
	}
	now, err := Await(ctx, patient, a.Runner, s, told)
	return now, err
}

// unanswered is what becomes of a prompt that nobody has answered in time.
func (a *asking) unanswered(ctx context.Context, s *session.Session) (Answer, error) {
	if a.Unanswered == Refuse {
		switch err := a.leave(ctx, s, "unanswered"); {
		case errors.Is(err, runner.ErrNotRunning): // it was answered after all
			return Answer{}, errUsed
		case err != nil:
			return Answer{}, err
		}
		return Answer{Deny, "nobody has answered in time", nil, s.ID}, nil
	}
	if a.After > 0 { // it is no longer waited for, but kept
		if _, err := a.waits(ctx, s.ID, true); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Message: fmt.Sprintf("nobody has answered yet (session %s): do other work and ask again later, or hand over", s.ID), Session: s.ID}, nil
}

// stopWithin is how long stopping a session may take, also after the agent has gone.
const stopWithin = 5 * time.Second

// stop ends a session that nobody waits for.
func (a *asking) stop(ctx context.Context, s *session.Session, note string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	why := runner.Stopping{Note: note}
	if a.Actor != nil {
		why.Actor = *a.Actor
	}
	_, err := a.Runner.Stop(ctx, s.ID, why)
	return err
}

// payload returns the members of what the last ruling handed in.
func payload(s *session.Session) (members map[string]any) {
	_ = json.Unmarshal(s.Last().MetaJSON, &members) // what is no object has no members
	return members
}
