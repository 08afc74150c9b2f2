package runner

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Called says what a callback is about.
type Called struct {
	Session      *session.Session
	Key          specialist.RoundKey // of the round in which was asked
	SpecialistID string
	// Used is set once the ask was answered, and Answered if that has become a proposal.
	Used     bool
	Answered *specialist.Proposal
	// Over says that the round was closed before the ask was answered, or its time was up.
	Over bool
}

// Repeats reports whether an answer is the one that was given.
func (c *Called) Repeats(a specialist.Answer) bool {
	p := c.Answered
	return p != nil && p.Transition.Name == a.TransitionName && (a.ToState == "" || p.Transition.Target == a.ToState) &&
		p.Reasoning == specialist.Clip(a.Reasoning, maxReasoning) && bytes.Equal(p.MetaJSON, a.MetaJSON)
}

// Called returns what a callback is about, id and token as in [Runner.Callback]; used and late
// ones, too. The error wraps ErrForbidden if they do not fit: nothing is said of why.
func (r *Runner) Called(ctx context.Context, id, token string) (*Called, error) {
	refused := refuse(ErrForbidden, "bad_callback", "this callback is not valid")
	sessionID, askID, _ := strings.Cut(id, ".")
	sid, err := session.ParseID(sessionID)
	if err != nil {
		return nil, refused
	}
	s, err := r.load(ctx, sid)
	if errors.Is(err, session.ErrNotFound) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	var found *Called
	var in specialist.RoundKey
	f := &session.Folder{}
	f.Applied = func(_ int64, ev session.Event, _, _ spend.Book) {
		key := f.Current.Key()
		switch d := ev.Data.(type) {
		case *session.Asked:
			for i := range d.Asks {
				a := &d.Asks[i]
				if a.Remote != nil && a.Remote.TokenHash != "" && key.AskID(a.Index) == askID && subtle.ConstantTimeCompare([]byte(a.Remote.TokenHash), []byte(hashToken(token))) == 1 {
					found, in = &Called{Session: s, Key: key, SpecialistID: a.SpecialistID}, key
				}
			}
		case *session.Proposed:
			if found != nil && key == in && key.AskID(d.Ask) == askID {
				p := d.Proposal
				found.Used, found.Answered = true, &p
			}
		case *session.AskFailed:
			if found != nil && key == in && key.AskID(d.Ask) == askID {
				switch d.Code {
				case session.CodeTimeout, session.CodeCancelled, session.CodeLost: // without an answer
					found.Over = true
				default:
					found.Used = true
				}
			}
		}
	}
	for _, err := range r.Fold(ctx, sid, f) {
		if err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, refused
	}
	found.Over = !found.Used && (found.Over || in != s.Key() || !s.Status.Live())
	return found, nil
}
