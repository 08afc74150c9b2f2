package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A session is what the checks know of one session: its log read again, and a slow,
// obvious model of what it must have been charged.
type observed struct {
	w        *world
	id       specialist.SessionID
	n        int
	folder   *session.Folder
	now      *session.Session // folded
	kept     *session.Folder  // the same, from the newest snapshot on; nil before the first
	prev     session.Hash
	spent    []exact.Money // before each event of the newest record
	asks     map[string]*ask
	executed map[specialist.RoundKey]*session.Executed
	audited  map[specialist.RoundKey]bool
	over     map[string]bool // asks that were out when more than the hard limit was first charged; nil before
	limit    exact.Money     // on its dollars; 0 is none
	grace    exact.Money     // what services had charged when a move lowered the limit
	ends     []int64         // the last events of its commits

	origin          *origin     // nil unless it is a fork
	base, probeBase exact.Money // what the other session had spent, and its guards

	hearings map[specialist.RoundKey]*hearing
	twice    error // a question of guards was answered again

	panels    map[specialist.RoundKey]*panel
	ruled     map[specialist.RoundKey][]*session.Ruled // that wait for others
	said      map[specialist.RoundKey]map[string]bool  // who has ruled, or taken that back
	contested map[specialist.RoundKey]bool             // everything has been shown

	taught   map[specialist.RoundKey]*session.Learned // and was not taken back
	reviewed map[specialist.RoundKey]bool

	cases *caseLog
}

func (s *observed) String() string {
	if s == nil {
		return "a session"
	}
	return fmt.Sprintf("s%d", s.n)
}

// An ask is what the log says of one asking of somebody outside.
type ask struct {
	id       string
	by       *service
	round    specialist.RoundKey
	index    int32
	estimate exact.Money
	requests int          // that were recorded
	open     bool         // nothing has come of it
	assumed  bool         // an answer that named no cost came when nobody waited for it: it is charged as estimated
	told     *exact.Money // what an answer said it cost
	answered bool
	guards   bool // the guards' own
	free     bool // not paid from the session's budget
}

// charge is what the ask must have cost the session so far, at least and at most: of
// what never arrived nobody can tell from the log whether it was sent.
func (a *ask) charge() (low, high exact.Money) {
	switch {
	case a.free:
		return 0, 0
	case a.told != nil:
		return *a.told, *a.told
	case a.open && a.assumed:
		return a.estimate, a.estimate
	case a.open:
		return 0, 0
	case a.by.accounts[a.id] == nil:
		return 0, a.estimate
	}
	return a.estimate, a.estimate
}

// A check is one record of a log as the invariants look at it; at the end of a run
// there is one without a record.
type check struct {
	w      *world
	s      *observed
	p      *process // who committed it
	live   *session.Session
	before *session.Session // folded; nil for a new session
	after  *session.Session // folded
	stored session.StoredRecord
	events []session.Event
	keys   []specialist.RoundKey // of the round in which each event happened
	fold   error

	act     *act  // of the human for whom it was committed; nil if there is none
	crowded error // who was asked without room for that
	alone   error // what was executed though humans did not agree
	few     error // what was executed without a quorum
	unheard error // what was executed though the truth gate has not passed it
}

// find returns the session of an id; a new one if it has just been started.
func (w *world) find(id specialist.SessionID) *observed {
	for _, s := range w.sessions {
		if s.id == id {
			return s
		}
	}
	programs := session.NewPrograms()
	for _, m := range []*machine.Machine{w.machine, w.other} {
		if _, err := programs.Of(m); err != nil {
			w.t.Fatal(err)
		}
	}
	s := &observed{w: w, id: id, n: len(w.sessions) + 1, folder: &session.Folder{Programs: programs}, asks: map[string]*ask{}, limit: w.limit,
		hearings: map[specialist.RoundKey]*hearing{}, executed: map[specialist.RoundKey]*session.Executed{}, audited: map[specialist.RoundKey]bool{}, panels: map[specialist.RoundKey]*panel{},
		ruled: map[specialist.RoundKey][]*session.Ruled{}, said: map[specialist.RoundKey]map[string]bool{}, contested: map[specialist.RoundKey]bool{}}
	s.taught, s.reviewed = map[specialist.RoundKey]*session.Learned{}, map[specialist.RoundKey]bool{}
	s.cases = newCaseLog(w)
	s.folder.Applied = func(_ int64, _ session.Event, before, _ spend.Book) { s.spent = append(s.spent, before.Money) }
	w.sessions = append(w.sessions, s)
	return s
}

func (w *world) named(id specialist.SessionID) string { return w.namedText(id.String()) }

func (w *world) namedText(id string) string {
	for _, s := range w.sessions {
		if s.id.String() == id {
			return s.String()
		}
	}
	return "a new session"
}

// check looks at everything that was committed, and at every call that has returned,
// since the last time.
func (w *world) check() {
	w.mu.Lock()
	news, landed := w.news, w.landed
	w.news, w.landed = nil, nil
	w.mu.Unlock()
	for _, n := range news {
		if c := w.read(n); w.trouble == nil {
			c.run(each)
		}
		if w.commits++; w.commits%countEvery == 0 && w.trouble == nil {
			w.tally()
		}
	}
	for _, a := range landed {
		a.p.land(a)
	}
	if w.trouble == nil {
		w.checkNow()
	}
}

// read reads the record that a commit has stored.
func (w *world) read(n commit) *check {
	s := w.find(n.after.ID)
	c := &check{w: w, s: s, p: n.p, act: n.act, live: n.after, before: s.now}
	for rec, err := range w.base.Records(context.Background(), s.id, n.first) {
		if err != nil {
			c.fold = err
			break
		}
		if rec.First != n.first {
			c.fold = fmt.Errorf("the record that was committed at %d is stored at %d", n.first, rec.First)
			break
		}
		rec.Events = bytes.Clone(rec.Events)
		c.stored = rec
		break
	}
	if c.fold == nil && c.stored.First == 0 {
		c.fold = fmt.Errorf("the record at %d was acknowledged and is not there", n.first)
	}
	if c.fold == nil {
		s.spent = s.spent[:0]
		c.events, c.fold = s.folder.Add(c.stored.Events)
	}
	if c.fold != nil {
		return c
	}
	s.now = s.folder.Session()
	c.after = s.now
	s.ends = append(s.ends, s.now.Sequence)
	c.enter()
	return c
}

// enter brings the model of the session up to the record.
func (c *check) enter() {
	key := specialist.RoundKey{Session: c.s.id}
	if c.before != nil {
		key = c.before.Key()
	}
	for i := range c.events {
		if o, ok := c.events[i].Data.(*session.RoundOpened); ok {
			c.s.closeAll(key)
			key.Round, key.Attempt = o.Round, o.Attempt
		}
		c.keys = append(c.keys, key)
		if d, ok := c.events[i].Data.(*session.Created); ok && d.Options.ForkedFrom != nil {
			c.inherit(d)
			continue
		}
		if d, ok := c.events[i].Data.(*session.Asked); ok {
			c.admit(c.s.spent[i], d, key)
		}
		if d, ok := c.events[i].Data.(*session.Ruled); ok {
			c.ruled(key, d)
		}
		c.cased(key, c.events[i].Data)
		c.timed(&c.events[i])
		if d, ok := c.events[i].Data.(*session.Executed); ok {
			c.executed(key, d)
			c.decided(key, d)
			c.gated(key, d)
		}
		c.s.heard(key, c.events[i].Data)
		c.s.enter(key, c.events[i].Data)
	}
}

func (s *observed) enter(key specialist.RoundKey, d session.Data) {
	switch d := d.(type) {
	case *session.Asked:
		for i := range d.Asks {
			s.asked(key, &d.Asks[i])
		}
	case *session.Proposed:
		for _, a := range s.asks { // the arbiter was asked about other proposals
			if a.open && a.round == key && a.by.id == "arb" {
				a.open = false
			}
		}
		s.settle(key, d.Ask, d.Usage, true)
	case *session.AskFailed:
		s.settle(key, d.Ask, d.Usage, false)
	case *session.Judged:
		s.settle(key, d.Ask, d.Usage, true)
	case *session.Probed:
		s.probed(key, d)
	case *session.Discarded:
		if a := s.settles(specialist.RoundKey{Session: s.id, Round: d.Round, Attempt: d.Attempt}, d.Ask); a != nil {
			a.tell(d.Usage) // another request for it may still be out
			// The present request was answered by a service that names no cost.
			a.assumed = a.assumed || d.Usage.Estimated && d.Usage.CostUSD > 0 && int(d.Repeat) == a.requests-1
		}
	case *session.Executed:
		s.closeAll(key)
		s.executed[key] = d
	case *session.Ended:
		if d.Code == session.CodeCancelled {
			s.w.count("cancelled")
		}
		s.closeAll(key)
	case *session.Ruled:
		if s.said[key] == nil {
			s.said[key] = map[string]bool{}
		}
		s.said[key][d.SpecialistID] = true
	case *session.Moved:
		s.limit, s.grace = s.w.limit, max(s.grace, s.counted())
	case *session.Resumed:
		for _, r := range d.Raised {
			s.limit = dollars(r.To)
		}
	case *session.AwaitsHuman:
		if d.Code == session.CodeNoQuorum {
			s.w.count("waits without a quorum")
		}
		s.contested[key] = s.contested[key] || d.Code == session.CodeContested
		if d.Draws != nil && d.Draws.Audit {
			s.audited[key] = true
		}
	}
}

func (s *observed) asked(key specialist.RoundKey, a *session.Ask) {
	if a.Remote == nil || s.w.services[a.SpecialistID] == nil {
		return
	}
	id := key.AskID(a.Index)
	known := s.asks[id]
	if known == nil {
		known = &ask{id: id, by: s.w.services[a.SpecialistID], round: key, index: a.Index, estimate: a.Remote.Estimate, guards: a.OfGuards(), free: a.OfGuards() && s.w.inquiries.free}
		s.asks[id] = known
	}
	known.open = true
	if !a.Remote.Accepted {
		known.requests++
	}
}

// settles returns the ask that something came of; nil if that was not asked outside.
func (s *observed) settles(key specialist.RoundKey, index int32) *ask {
	if index == 0 {
		return nil
	}
	return s.asks[key.AskID(index)]
}

// settle enters what came of an ask, which ends it.
func (s *observed) settle(key specialist.RoundKey, index int32, u specialist.Usage, answered bool) {
	if a := s.settles(key, index); a != nil {
		a.answered = a.answered || answered
		a.open = false
		a.tell(u)
	}
}

// tell enters what an answer said of its cost.
func (a *ask) tell(u specialist.Usage) {
	if u.Has(specialist.CostGiven) && !u.Estimated && u.CostUSD > 0 {
		cost := u.CostUSD
		a.told = &cost
	}
}

// closeAll ends the asks of a round: nobody waits for them any more.
func (s *observed) closeAll(key specialist.RoundKey) {
	for _, a := range s.asks {
		if a.round == key {
			a.open = false
		}
	}
}

// counted is what services have charged for the session, and what a fork begins with.
func (s *observed) counted() (sum exact.Money) {
	sum = s.base
	for _, a := range s.asks {
		sum += a.counted()
	}
	return sum
}

// counted is what the service has charged for the ask, if the session pays that.
func (a *ask) counted() exact.Money {
	acc := a.by.accounts[a.id]
	if acc == nil || a.free {
		return 0
	}
	return acc.charged
}

// land takes note of a call that has returned.
func (p *process) land(a *activity) {
	for i, other := range p.active {
		if other == a {
			p.active = append(p.active[:i:i], p.active[i+1:]...)
			break
		}
	}
	what := "returns"
	if a.err != nil {
		what = "returns: " + a.err.Error()
	}
	p.w.say("  %s %s", a.name, what)
	p.w.checkError(a)
	p.w.refusedToSet(a)
}

// dollars reads an amount that a record says.
func dollars(n json.Number) exact.Money {
	m, err := exact.ParseMoney(string(n))
	if err != nil {
		panic(err)
	}
	return m
}
