package guard

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/verdict"
)

// readPacks reads the packs. One that is not named does not run, so that a section
// which names none is a mistake.
func readPacks(r *reader, p *Packs) func(path string, value []byte) {
	one := func(into **Pack, action verdict.Status) func(path string, value []byte) {
		pack := &Pack{Action: action, Output: true, Args: true, Results: true}
		return r.orOff(func(path string, value []byte) {
			*into = pack
			r.object([]member{{"action", readAction(r, &pack.Action)}, {"on", readParts(r, pack)}})(path, value)
		}, func() { *into = nil })
	}
	read := r.object([]member{
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

// readAction reads what follows from a finding.
func readAction(r *reader, into *verdict.Status) func(path string, value []byte) {
	return func(path string, value []byte) {
		name := into.String()
		r.oneOf(&name, verdict.Warn.String(), verdict.Retry.String(), verdict.Escalate.String(), verdict.Abort.String())(path, value)
		*into, _ = verdict.StatusNamed(name)
	}
}

// readParts reads the list of what a pack reads.
func readParts(r *reader, p *Pack) func(path string, value []byte) {
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

// readModelName reads the name of a model. What looks like a key is refused and not shown.
func readModelName(r *reader, into *string) func(path string, value []byte) {
	read := r.name(into)
	return func(path string, value []byte) {
		if Redact(string(value)) != string(value) {
			r.report(path, "bad-value", nameOf(path)+" holds what looks like a key", "keys belong into the environment, not into files")
			return
		}
		read(path, value)
	}
}
