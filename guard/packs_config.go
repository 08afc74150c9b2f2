package guard

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/verdict"
)

// packs reads the packs. One that is not named does not run, so that a section
// which names none is a mistake.
func (r *reader) packs(p *Packs) func(path string, value []byte) {
	one := func(into **Pack, action verdict.Status) func(path string, value []byte) {
		pack := &Pack{Action: action, Output: true, Args: true, Results: true}
		return r.orOff(func(path string, value []byte) {
			*into = pack
			r.object("pack", []member{{"action", r.action(&pack.Action)}, {"on", r.parts(pack)}})(path, value)
		}, func() { *into = nil })
	}
	read := r.object("packs", []member{
		{"secrets", one(&p.Secrets, verdict.Retry)},
		{"pii", one(&p.PII, verdict.Retry)},
		{"prompt_injection", one(&p.Injection, verdict.Warn)},
	})
	return func(path string, value []byte) {
		before := len(r.problems)
		read(path, value)
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(value, &fields) != nil || len(r.problems) > before {
			return
		}
		if fields["secrets"] == nil && fields["pii"] == nil && fields["prompt_injection"] == nil {
			r.report(path, "missing-field", "packs names no pack, so none would run", `it may have "secrets", "pii" and "prompt_injection"`)
		}
	}
}

// action reads what follows from a finding.
func (r *reader) action(into *verdict.Status) func(path string, value []byte) {
	return func(path string, value []byte) {
		name := into.String()
		r.oneOf(&name, verdict.Warn.String(), verdict.Retry.String(), verdict.Escalate.String(), verdict.Abort.String())(path, value)
		*into, _ = verdict.StatusNamed(name)
	}
}

// parts reads the list of what a pack reads.
func (r *reader) parts(p *Pack) func(path string, value []byte) {
	names := []string{"output", "args", "results"}
	return func(path string, value []byte) {
		var on []string
		before := len(r.problems)
		readList(r, &on, func(path string, value []byte) (name string) {
			r.oneOf(&name, names...)(path, value)
			return name
		})(path, value)
		if len(on) == 0 && len(r.problems) == before {
			r.report(path, "bad-value", "on is empty, so the pack would read nothing", fmt.Sprintf("it may have %q", names))
		}
		p.Output, p.Args, p.Results = slices.Contains(on, "output"), slices.Contains(on, "args"), slices.Contains(on, "results")
	}
}
