package cli

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// loadShadow reads the guards that --guards names; nil if it names none. Guards
// of a file of their own are taken for a machine's.
func (a *app) loadShadow(path string) (*guardlog.Shadow, error) {
	if path == "" {
		return nil, nil
	}
	data, err := a.ReadFile(path, files.Guards)
	if err != nil {
		return nil, err
	}
	var c *guard.Config
	var states map[string]*guard.Config
	if guards.HoldsMachine(path, data) {
		m, err := a.ParseMachine(path, data)
		if err != nil {
			return nil, err
		}
		if c, states, err = guard.OfMachine(m); err != nil {
			return nil, err
		}
	} else if err := machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		c, problems = guard.Parse(section, false)
		return problems
	}); err != nil {
		return nil, err
	}
	return guardlog.NewShadow(guard.NewReplayer(c, states)), nil
}

// shadowed shows the steps on which guards and shadow differ.
func (p *printer) shadowed(lines []guardlog.ShadowLine) {
	for _, l := range lines {
		if p.a.Flags.JSON {
			_ = render.JSON(p.out, l) // its error stays with out, and end returns it
			continue
		}
		p.Line("Shadow %s%s, where the guards say %s%s", p.paint.Yellow(l.Shadow), because(l.ShadowCodes), l.Status, because(render.CleanAll(l.Codes)))
	}
}

// because returns codes in brackets, "" if there are none.
func because(codes []string) string {
	return render.When(len(codes) > 0, " ("+strings.Join(codes, ", ")+")")
}

// endShadow sums up what the shadow has judged.
func (p *printer) endShadow(r runner.Result) error {
	if p.shadow == nil {
		return nil
	}
	sum, err := p.shadow.Summary(r.Session.ID)
	switch {
	case err != nil:
		p.hint("the shadow could not follow the session: %s", render.Clean(err.Error()))
	case p.a.Flags.JSON:
		return render.JSON(p.out, sum)
	case !p.a.Flags.Quiet:
		fmt.Fprintf(p.out, "Shadow: %s judged without effect, %d equal, %d different, %d undecidable\n", render.Plural(sum.Checks, "step"), sum.Equal, sum.Different, sum.Undecidable)
	}
	return nil
}
