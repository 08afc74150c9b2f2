package spend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A ledger as plain data, for a store, and back. A snapshot locks one tenant at a time,
// so the scopes and calls of a tenant fit together, those of different tenants only
// each for itself. Calls that hold something and calls that were charged as estimated
// are part of it; those that lapsed are not, since they were charged nothing.
//
// Restore builds scopes from the outside in, then who spawned whom, then calls. Whoever
// had sent an open call is gone, so one that was started is charged as estimated now,
// and can still be corrected by its id (Find); one that was only reserved was never
// sent. Prices, quotas and the clock come from the configuration; a window takes its
// counts over only if it is of the same length and kind as before.

// A LedgerState is all that a [Ledger] knows, as plain data for a store. Equal
// ledgers have equal states. Prices, quotas and the clock are not part of it.
type LedgerState struct {
	Scopes  []ScopeState  `json:"scopes"`            // outer ones first
	Calls   []CallState   `json:"calls,omitempty"`   // open, or charged as estimated
	Outputs []OutputState `json:"outputs,omitempty"` // by model
}

// A ScopeState is one open scope.
type ScopeState struct {
	Scope    Scope           `json:"scope"`
	Opened   specialist.Time `json:"opened"`
	Progress specialist.Time `json:"progress"`
	Budget   *Budget         `json:"budget,omitempty"`
	Spent    Book            `json:"spent"`
	Probes   Book            `json:"probes,omitzero"`
	Passed   bool            `json:"softPassed,omitempty"`
	Due      bool            `json:"softDue,omitempty"` // nobody has been told yet
	Parent   string          `json:"parent,omitempty"`  // an open session
	Spawned  int             `json:"spawned,omitempty"` // generations
	Settled  []string        `json:"settled,omitempty"` // usage ids, sorted
	Windows  []WindowState   `json:"windows,omitempty"`
}

// A WindowState is what a window of a quota has counted.
type WindowState struct {
	Msec    int64         `json:"msec"`
	Sliding bool          `json:"sliding,omitempty"`
	At      int64         `json:"at"` // number of the newest part
	Tokens  []int64       `json:"tokens"`
	Calls   []int64       `json:"calls"`
	USD     []exact.Money `json:"usd"`
}

// A CallState is one call that is open, or that was charged as estimated.
type CallState struct {
	Scope   Scope           `json:"scope"`
	ID      string          `json:"id,omitempty"`
	Model   string          `json:"model,omitempty"`
	At      specialist.Time `json:"at"` // when it was reserved
	Entry   Book            `json:"entry"`
	Probe   bool            `json:"probe,omitempty"`
	Waived  bool            `json:"waived,omitempty"`
	Started bool            `json:"started,omitempty"`
	Charged bool            `json:"charged,omitempty"`
}

// An OutputState is the length of a model's last outputs.
type OutputState struct {
	Model   string  `json:"model"`
	Lengths []int64 `json:"lengths"` // in tokens, the oldest first
}

// Snapshot returns what the ledger knows. The calls of a tenant and what they
// are charged always fit together; between two tenants others may act.
func (l *Ledger) Snapshot() LedgerState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var state LedgerState
	for _, model := range slices.Sorted(maps.Keys(l.models)) {
		if lengths := l.models[model].list(); len(lengths) > 0 {
			state.Outputs = append(state.Outputs, OutputState{model, lengths})
		}
	}
	for _, n := range l.scopes {
		if n.depth == 1 {
			n.mu.Lock()
			state.Scopes = n.appendScopes(state.Scopes)
			state.Calls = n.calls.appendStates(state.Calls)
			n.mu.Unlock()
		}
	}
	slices.SortFunc(state.Scopes, func(a, b ScopeState) int { return a.Scope.compare(b.Scope) })
	slices.SortStableFunc(state.Calls, func(a, b CallState) int {
		return cmp.Or(a.Scope.compare(b.Scope), cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
	})
	return state
}

// compare orders scopes so that those around come first.
func (s Scope) compare(o Scope) int {
	return cmp.Or(strings.Compare(s.Tenant, o.Tenant), strings.Compare(s.Session, o.Session), strings.Compare(s.Round, o.Round), strings.Compare(s.Proposer, o.Proposer))
}

// appendScopes appends n and all inside it; its tenant is locked.
func (n *node) appendScopes(list []ScopeState) []ScopeState {
	s := ScopeState{
		Scope: n.scope, Opened: specialist.Time(n.opened), Progress: specialist.Time(n.progress), Budget: n.budget,
		Spent: n.spent, Probes: n.probes, Passed: n.soft.passed, Due: n.soft.due, Spawned: n.spawned,
		Settled: slices.Sorted(maps.Keys(n.settled)),
	}
	if n.parent != nil && !n.parent.closed {
		s.Parent = n.parent.scope.Session
	}
	for i := range n.windows {
		s.Windows = append(s.Windows, n.windows[i].state())
	}
	list = append(list, s)
	for inner := range n.inside {
		list = inner.appendScopes(list)
	}
	return list
}

func (w *window) state() WindowState {
	s := WindowState{Msec: w.length, Sliding: w.sliding, At: w.at}
	for _, p := range w.parts {
		s.Tokens, s.Calls, s.USD = append(s.Tokens, p.tokens), append(s.Calls, p.calls), append(s.USD, p.usd)
	}
	return s
}

func (s *calls) appendStates(list []CallState) []CallState {
	for i := range s.slots {
		c := &s.slots[i]
		if c.state == callFree || c.state == callLapsed {
			continue
		}
		leaf := c.leaf
		for leaf.closed {
			leaf = leaf.path[leaf.depth-2]
		}
		list = append(list, CallState{
			Scope: leaf.scope, ID: c.id, Model: c.model.named(), At: specialist.Time(c.at), Entry: c.entry, Probe: c.probe, Waived: c.waived,
			Started: c.state == callStarted, Charged: c.state == callExpired,
		})
	}
	return list
}

// Restore fills an empty ledger with a state. Who made the open calls is gone:
// those that were started are charged as estimated, which [Ledger.Find] can still
// correct, the others never were. Nothing that was spent comes back. It returns
// an error wrapping [verdict.ErrInput], and the ledger must not be used, if the ledger is
// not empty or the state cannot be.
func (l *Ledger) Restore(state LedgerState) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.scopes) > 0 {
		return fmt.Errorf("%w: the ledger is in use", verdict.ErrInput)
	}
	for _, o := range state.Outputs {
		known := l.model(o.Model)
		for _, n := range o.Lengths {
			known.Add(max(n, 0))
		}
	}
	scopes := slices.Clone(state.Scopes)
	slices.SortFunc(scopes, func(a, b ScopeState) int { return a.Scope.compare(b.Scope) })
	for _, s := range scopes {
		if err := l.restoreScope(s); err != nil {
			return err
		}
	}
	for _, s := range scopes {
		if err := l.restoreParent(s); err != nil {
			return err
		}
	}
	now := l.config.Now().UnixMilli()
	for _, c := range state.Calls {
		if err := l.restoreCall(c, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) restoreScope(s ScopeState) error {
	if err := (Opening{Budget: s.Budget, Spent: s.Spent}).check(s.Scope); err != nil {
		return err
	}
	var outer *node
	if s.Scope.levels() > 1 {
		outer = l.scopes[s.Scope.around()]
		if outer == nil {
			return fmt.Errorf("%w: scope %s has nothing around it", verdict.ErrInput, s.Scope)
		}
	}
	if l.scopes[s.Scope] != nil {
		return fmt.Errorf("%w: scope %s is there twice", verdict.ErrInput, s.Scope)
	}
	n := l.add(s.Scope, outer, moment(int64(s.Opened)))
	n.lock()
	defer n.unlock()
	n.limit(s.Budget)
	n.spent, n.probes, n.progress, n.spawned = s.Spent, s.Probes, int64(s.Progress), max(s.Spawned, 0)
	n.soft = softState{s.Passed, s.Due}
	for _, id := range s.Settled {
		n.home().settled[id] = struct{}{}
	}
	for i := range n.windows {
		n.windows[i].restore(s.Windows)
	}
	return nil
}

// restore takes over the count of a window of the same kind. It is the same in
// all of them, whatever they limit.
func (w *window) restore(states []WindowState) {
	for _, s := range states {
		n := len(w.parts)
		if s.Msec != w.length || s.Sliding != w.sliding || len(s.Tokens) != n || len(s.Calls) != n || len(s.USD) != n {
			continue
		}
		w.at, w.sum = s.At, amount{}
		for i := range w.parts {
			w.parts[i] = amount{s.Tokens[i], s.Calls[i], s.USD[i]}.orNothing()
			w.sum = w.sum.plus(w.parts[i])
		}
		return
	}
}

func (l *Ledger) restoreParent(s ScopeState) error {
	if s.Parent == "" {
		return nil
	}
	parent := l.scopes[Scope{Tenant: s.Scope.Tenant, Session: s.Parent}]
	if parent == nil || s.Scope.levels() != 2 {
		return fmt.Errorf("%w: %q is no session that could have spawned %s", verdict.ErrInput, s.Parent, s.Scope)
	}
	l.scopes[s.Scope].parent = parent
	parent.children++
	return nil
}

func (l *Ledger) restoreCall(s CallState, now int64) error {
	leaf := l.scopes[s.Scope]
	if leaf == nil || (Opening{Spent: s.Entry}).check(s.Scope) != nil || s.Probe && leaf.depth == 1 {
		return fmt.Errorf("%w: the call %q of scope %s cannot be", verdict.ErrInput, s.ID, s.Scope)
	}
	if !s.Started && !s.Charged {
		return nil
	}
	c := call{leaf: leaf, id: s.ID, entry: s.Entry, at: int64(s.At), probe: s.Probe, waived: s.Waived}
	if s.Model != "" {
		c.model = l.model(s.Model)
	}
	leaf.lock()
	defer leaf.unlock()
	slot, _ := leaf.path[0].calls.take(&c)
	leaf.path[0].calls.slots[slot].state = callExpired
	leaf.kept(1)
	if !s.Charged {
		leaf.charge(s.Entry, s.Probe, now)
	}
	return nil
}
