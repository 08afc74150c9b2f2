package session

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/machine"
)

// What a log is folded by: the machine of a session and its guards, compiled once for all
// sessions of a definition. A session has one of its own only if it differs from the others: a
// human has raised a limit in it, or it was started without somebody.

// A Program is a machine with its guards compiled: all that is needed to fold a
// log. It never changes, and sessions of the same definition share one, but for
// those in which a human has raised a limit.
type Program struct {
	Machine *machine.Machine
	// Guarded is true if the machine or one of its states has guards.
	Guarded bool
	guards  []*guard.Config // by index of the state; nil where there are none
	observe *guard.Config   // counts where nothing is checked

	Base    *Program      // as it was when the session began; the Program itself for most
	raised  []guard.Raise // by humans, for one session
	lifts   []int32       // how many of raised were raised at once, each time
	missing []string      // specialists without whom the session was started
}

// Without returns p for a session that is started without these specialists.
func (p *Program) Without(ids []string) *Program {
	next := *p
	next.Base, next.missing = &next, ids
	return &next
}

// Like returns p for a session that runs by another program: without whom it was started
// without.
func (p *Program) Like(other *Program) *Program {
	if other.missing == nil || p.missing != nil {
		return p
	}
	return p.Without(other.missing)
}

// Missing returns the specialists without whom the session was started; nil for most. The
// caller must not change them.
func (p *Program) Missing() []string { return p.missing }

// Lacks reports whether the session was started without a specialist.
func (p *Program) Lacks(id string) bool { return slices.Contains(p.missing, id) }

// Guards returns the guards in force in a state; nil if there are none.
func (p *Program) Guards(s *machine.State) *guard.Config { return p.guards[s.Index] }

// counting returns the configuration that says what to remember of a step out
// of s; nil if nothing needs to be remembered.
func (p *Program) counting(s *machine.State) *guard.Config {
	if c := p.guards[s.Index]; c != nil || !p.Guarded {
		return c
	}
	return p.observe
}

// NewProgram compiles the guards of a machine. Those of one that a store holds are
// held to no rule, as the machine is not.
func NewProgram(m *machine.Machine) (*Program, error) {
	p := &Program{Machine: m, guards: make([]*guard.Config, len(m.States()))}
	p.Base = p
	base := []byte(m.Definition().Guards)
	for i := range m.States() {
		section, err := guard.Merge(base, m.States()[i].Guards)
		if err != nil {
			return nil, fmt.Errorf("guards of state %q: %w", m.States()[i].Name, err)
		}
		if section == nil {
			continue
		}
		c, problems := parseGuards(m, section)
		if len(problems) > 0 {
			return nil, fmt.Errorf("guards of state %q: %s", m.States()[i].Name, problems[0].Message)
		}
		p.guards[i], p.Guarded = c, true
	}
	if p.Guarded {
		p.observe, _ = guard.Parse([]byte("{}"), false)
	}
	return p, nil
}

func parseGuards(m *machine.Machine, section []byte) (*guard.Config, []machine.Problem) {
	if m.Stored() {
		return guard.ParseStored(section)
	}
	return guard.Parse(section, false)
}

// Programs compiles definitions, and remembers the 256 that were used last, or up to
// twice as many. One that was forgotten is compiled again, and no other Program is equal
// to it by pointer: the sessions that have the former one keep it. It may be used
// concurrently.
type Programs struct {
	mu       sync.Mutex
	byDigest *lru.Cache[string, *Program]
}

// NewPrograms returns an empty set.
func NewPrograms() *Programs { return &Programs{byDigest: lru.New[string, *Program](256)} }

// Of returns the Program of a machine: the same for every machine with the same
// digest, as long as it is remembered.
func (ps *Programs) Of(m *machine.Machine) (*Program, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, _ := ps.byDigest.Get(m.Digest()); p != nil {
		return p, nil
	}
	p, err := NewProgram(m)
	if err == nil {
		ps.byDigest.Put(m.Digest(), p)
	}
	return p, err
}

// known returns the Program of a digest, nil if it is not remembered.
func (ps *Programs) known(digest string) *Program {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p, _ := ps.byDigest.Get(digest)
	return p
}

// Parse compiles a stored definition and checks that it is the one of that
// digest.
func (ps *Programs) Parse(digest string, definition []byte) (*Program, error) {
	if p := ps.known(digest); p != nil {
		return p, nil
	}
	m, err := machine.Parse(digest[:min(12, len(digest))]+".json", definition, StoredChecks())
	if err != nil {
		return nil, &CorruptError{What: "definition " + digest, Problem: inOneLine(err)}
	}
	if m.Digest() != digest {
		return nil, &CorruptError{What: "definition " + digest, Problem: "its content has digest " + m.Digest()}
	}
	return ps.Of(m)
}

// inOneLine returns what is wrong with a definition, without the places in a file that
// nobody has.
func inOneLine(err error) string {
	if invalid, ok := errors.AsType[*machine.Error](err); ok {
		return invalid.Summary()
	}
	return err.Error()
}

// StoredChecks returns the rules of a definition that a store holds: none, for the
// program that stored it has checked its own.
func StoredChecks() machine.Checks { return machine.Checks{Stored: true} }
