package cli

import (
	"context"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

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
	cmd.Flags().StringVar(&f.as, "as", "", "`who` looks; without it what is withheld from anybody is withheld")
	cmd.Flags().BoolVar(&f.show, "show-proposals", false, "show the proposals even where they are withheld until the ruling; that is recorded, and later rulings of yours in the round (without --as: of everybody) are not blind")
}

// access returns what the command does to the store: a look is recorded.
func (f *viewFlags) access() access {
	if f.show {
		return writes
	}
	return reads
}

// look returns the question of a session as the viewer sees it, and the session
// after that.
func (f *viewFlags) look(ctx context.Context, e *engine, s *session.Session) (runner.Question, *session.Session, error) {
	if f.show {
		return e.Reveal(ctx, s.ID, machine.SpecialistID(f.as))
	}
	q, err := e.Question(ctx, s, machine.SpecialistID(f.as))
	return q, s, err
}
