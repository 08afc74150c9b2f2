package agents

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// The machine that an undertaking pins: the built-in one or an edited copy of it, with who the
// agents are and the budget written into it, so that whoever goes on later has the same.

// machine returns the machine with agent and budget written into it.
func (w *work) machine() (*machine.Machine, error) {
	f := w.flags
	own := fullMachine
	if f.solo {
		own = soloMachine
	}
	name, text, _ := machines.Read(own)
	if f.machine != "" {
		var err error
		name = f.machine
		if text, err = w.ReadFile(name, files.Machine); err != nil {
			return nil, err
		}
	}
	m, err := w.ParseMachine(name, text)
	if err != nil {
		return nil, err
	}
	if f.machine != "" {
		file, text, _ := machines.Read(own)
		base, err := w.ParseMachine(file, text)
		if err != nil {
			return nil, err
		}
		if err := undertaking.SameMoves(m, base); err != nil {
			return nil, command.Usage("%s: %v", name, err)
		}
	}
	limit, err := exact.ParseMoney(f.budget)
	if err != nil || limit <= 0 {
		return nil, command.Usage("--budget is %q, it is a number of dollars above 0", f.budget)
	}
	if text, err = pinned(m, f.agents(), limit, f.maxTokens); err != nil {
		return nil, err
	}
	return w.ParseMachine(strings.TrimSuffix(name, filepath.Ext(name))+".json", text)
}

// The machines of undertakings.
const (
	fullMachine = "undertaking"
	soloMachine = "undertaking-solo"
)

// isUndertaking reports whether a session is an undertaking.
func isUndertaking(s *session.Session) bool {
	name := s.Machine().Name()
	return name == fullMachine || name == soloMachine
}

// agents returns the agent of each specialist that is one.
func (f *undertakeFlags) agents() map[string]string {
	list := map[string]string{"orchestrator": f.agent}
	if !f.solo {
		verifier := cmp.Or(f.verifier, f.agent)
		list["manager"], list["verifier-a"], list["verifier-b"] = cmp.Or(f.manager, f.agent), verifier, verifier
	}
	return list
}

// pinned returns the text of a machine whose specialists are agents, with a budget. All else stays
// as it is written.
func pinned(m *machine.Machine, agents map[string]string, limit exact.Money, tokens int64) ([]byte, error) {
	def := jsontext.ReadObject(m.JSON())
	var list []jsontext.Object
	if err := json.Unmarshal(def.Get("specialists"), &list); err != nil {
		return nil, err
	}
	for i := range list {
		var id string
		if json.Unmarshal(list[i].Get("specialistId"), &id) == nil && agents[id] != "" {
			list[i] = with(list[i], "agent", agents[id])
		}
	}
	guards := jsontext.ReadObject(def.Get("guards"))
	budget := jsontext.ReadObject(guards.Get("budget"))
	if len(budget.Members()) == 0 {
		budget = with(budget, "default_estimate_usd", 0)
	}
	budget = with(budget, "hard_limit_usd", json.Number(limit.String()))
	if tokens > 0 {
		budget = with(budget, "hard_limit_tokens", tokens)
	}
	return with(with(def, "specialists", list), "guards", with(guards, "budget", budget)).JSON(), nil
}

// with returns an object with a member that is set.
func with(o jsontext.Object, name string, value any) jsontext.Object {
	text, err := jsontext.Marshal(value)
	if err != nil {
		panic("agents: " + err.Error()) // never: values are texts, numbers and objects
	}
	return o.With([]jsontext.Member{{Name: name, Value: text}})
}
