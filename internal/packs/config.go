package packs

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/verdict"
)

// Section reads the packs. One that is not named does not run, so that a section
// which names none is a mistake.
func Section(r *section.Reader, p *Packs) func(path string, value []byte) {
	one := func(into **Pack, action verdict.Status) func(path string, value []byte) {
		pack := &Pack{Action: action, Output: true, Args: true, Results: true}
		return r.OrOff(func(path string, value []byte) {
			*into = pack
			r.Object([]section.Member{{Name: "action", Read: readAction(r, &pack.Action)}, {Name: "on", Read: readParts(r, pack)}})(path, value)
		}, func() { *into = nil })
	}
	read := r.Object([]section.Member{
		{Name: "secrets", Read: one(&p.Secrets, verdict.Retry)},
		{Name: "pii", Read: one(&p.PII, verdict.Retry)},
		{Name: "prompt_injection", Read: one(&p.Injection, verdict.Warn)},
	})
	return func(path string, value []byte) {
		before := len(r.Problems)
		read(path, value)
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(value, &fields) != nil || len(r.Problems) > before {
			return
		}
		if fields["secrets"] == nil && fields["pii"] == nil && fields["prompt_injection"] == nil {
			r.Report(path, "missing-field", "packs names no pack, so none would run", `it may have "secrets", "pii" and "prompt_injection"`)
		}
	}
}

// readAction reads what follows from a finding.
func readAction(r *section.Reader, into *verdict.Status) func(path string, value []byte) {
	return func(path string, value []byte) {
		name := into.String()
		r.OneOf(&name, verdict.Warn.String(), verdict.Retry.String(), verdict.Escalate.String(), verdict.Abort.String())(path, value)
		*into, _ = verdict.StatusNamed(name)
	}
}

// readParts reads the list of what a pack reads.
func readParts(r *section.Reader, p *Pack) func(path string, value []byte) {
	names := []string{"output", "args", "results"}
	return func(path string, value []byte) {
		var on []string
		before := len(r.Problems)
		section.List(r, &on, func(path string, value []byte) (name string) {
			r.OneOf(&name, names...)(path, value)
			return name
		})(path, value)
		if len(on) == 0 && len(r.Problems) == before {
			r.Report(path, "bad-value", "on is empty, so the pack would read nothing", fmt.Sprintf("it may have %q", names))
		}
		p.Output, p.Args, p.Results = slices.Contains(on, "output"), slices.Contains(on, "args"), slices.Contains(on, "results")
	}
}

// ModelName reads the name of a model. What looks like a key is refused and not shown.
func ModelName(r *section.Reader, into *string) func(path string, value []byte) {
	read := r.Name(into)
	return func(path string, value []byte) {
		if Redact(string(value)) != string(value) {
			r.Report(path, "bad-value", section.NameOf(path)+" holds what looks like a key", "keys belong into the environment, not into files")
			return
		}
		read(path, value)
	}
}
