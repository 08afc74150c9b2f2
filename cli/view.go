package cli

import (
	"context"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// viewFlags say who looks at what is to be decided, and whether they want to see what
// is withheld from them.
type viewFlags struct {
	as   string
	show bool
}

func (f *viewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.as, "as", "", "the `human` who looks; without it, what is withheld from any human is not shown")
	cmd.Flags().BoolVar(&f.show, "show-proposals", false, "show the proposals even where they are withheld until the ruling; that is recorded, and later rulings of yours in the round (without --as: of everybody) are not blind")
}

// access returns what the command does to the store: a look is recorded.
func (f *viewFlags) Access() command.Access {
	return command.AccessFor(f.show)
}

// lookAtAll returns a session after the viewer has looked at it, and the rounds that are
// withheld from them, with why. With show they look at all there are.
func (f *viewFlags) lookAtAll(ctx context.Context, e *engine, s *session.Session) (after *session.Session, hidden map[int32]string, err error) {
	viewer := machine.SpecialistID(f.as)
	if e.far != nil { // which leaves out what is withheld
		if f.show {
			s, err = e.far.LookAtAll(ctx, s, viewer)
		}
		return s, nil, err
	}
	if !f.show {
		hidden, err = e.WithheldRounds(ctx, s, viewer)
		return s, hidden, err
	}
	for _, v := range s.Reviews() {
		if s, err = e.RevealReview(ctx, s.ID, v.Key.ID(), viewer, command.LocalActor()); err != nil {
			return s, nil, err
		}
	}
	_, s, err = e.Reveal(ctx, s.ID, viewer, command.LocalActor())
	return s, nil, err
}

// look returns the question of a session as the viewer sees it, and the session
// after that.
func (f *viewFlags) look(ctx context.Context, e *engine, s *session.Session) (runner.Question, *session.Session, error) {
	if f.show {
		return e.Reveal(ctx, s.ID, machine.SpecialistID(f.as), command.LocalActor())
	}
	q, err := e.Question(ctx, s, machine.SpecialistID(f.as))
	return q, s, err
}
