// Package tenants bounds what the tenants of an engine may use over all their sessions. It
// says, too, what they did before it ran: whose sessions are, and what those used of a quota.
package tenants

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A restart must not refill a quota. So when an engine first loads a tenant it reads
// from the store what the tenant's sessions spent within the longest window of its
// quota, each part with its time, which of them are open, and which asks are out.
// The log holds what the windows would have held; where it says less than the
// windows would, which is of calls that never came to be sent, they are counted.

// A Source is where sessions are read.
type Source struct {
	Quota func(tenant string) *spend.Quota // nil of a tenant that has none
	Scope func(s *session.Session) spend.Scope
	Clock func() time.Time
	List  func(ctx context.Context, q session.ListQuery) ([]session.Summary, error)
	Load  func(ctx context.Context, id specialist.SessionID) (*session.Session, error)
	// Fold reads the log of a session into f, record by record.
	Fold func(ctx context.Context, id specialist.SessionID, f *session.Folder) iter.Seq2[int64, error]
	// Shared counts for all processes; nil: this one counts for itself.
	Shared session.QuotaStore
}

// now returns the time as sessions have it.
func (s *Source) now() specialist.Time { return specialist.TimeOf(s.Clock()) }

// Tenants are those that an engine has loaded, and what it knows of the others. They may
// be used concurrently.
type Tenants struct {
	from  Source
	known sync.Map // of *spend.Quota by tenant; asked for once

	mu     sync.Mutex // held while a tenant is loaded, so that nobody spends meanwhile
	loaded map[string]bool
	of     map[specialist.SessionID]string   // whose the sessions are that were listed
	since  specialist.Time                   // from when on they are all in of; 0 before the first list
	listed specialist.Time                   // up to when
	open   map[string][]specialist.SessionID // of a tenant when it was loaded; others may run them
}

// New returns tenants of whom none is loaded.
func New(from Source) *Tenants {
	return &Tenants{from: from, loaded: map[string]bool{}, of: map[specialist.SessionID]string{}, open: map[string][]specialist.SessionID{}}
}

// Quota returns the quota of a tenant; nil if it has none.
func (t *Tenants) Quota(tenant string) *spend.Quota {
	if q, asked := t.known.Load(tenant); asked {
		return q.(*spend.Quota)
	}
	q, _ := t.known.LoadOrStore(tenant, t.from.Quota(tenant))
	return q.(*spend.Quota)
}

// Recall has what a tenant did before the engine knew of it be counted, once.
func (t *Tenants) Recall(ctx context.Context, counts session.QuotaStore, tenant string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded[tenant] {
		return nil
	}
	q := t.Quota(tenant)
	if err := counts.RecallQuota(ctx, tenant, q, func(ctx context.Context) (spend.Past, error) {
		past, err := t.past(ctx, tenant, t.from.now()-specialist.Time(q.Longest()))
		if err != nil {
			return past, fmt.Errorf("what tenant %q used before: %w", tenant, err)
		}
		return past, nil
	}); err != nil {
		return err
	}
	t.loaded[tenant] = true
	return nil
}

// Forget has a tenant be recalled again.
func (t *Tenants) Forget(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.loaded, tenant)
}

// past returns what the sessions of a tenant did since a moment.
func (t *Tenants) past(ctx context.Context, tenant string, since specialist.Time) (p spend.Past, err error) {
	t.open[tenant] = nil // an attempt that failed may have found some
	if err := t.list(ctx, since); err != nil {
		return p, err
	}
	for id, whose := range t.of {
		if whose != tenant {
			continue
		}
		f, before := &session.Folder{}, len(p.Spent)
		a := account(f, since, func(s spend.Spending) { p.Spent = append(p.Spent, s) })
		live, err := a.read(ctx, t.from, id)
		if err != nil {
			return p, fmt.Errorf("session %s: %w", id, err)
		}
		p.Calls = append(p.Calls, a.calls(tenant)...)
		if live {
			p.Sessions, t.open[tenant] = append(p.Sessions, id.String()), append(t.open[tenant], id)
		} else if len(p.Spent) > before {
			p.Ended = append(p.Ended, id.String())
		}
	}
	return p, nil
}

// list notes whose the sessions are that changed since a moment, or are open. What
// it knows already it does not ask for.
func (t *Tenants) list(ctx context.Context, since specialist.Time) error {
	from, now := max(since, 1), t.from.now()
	if t.since != 0 && t.since <= from {
		from = t.listed
	}
	for _, q := range []session.ListQuery{ // one that ends meanwhile is in the second
		{Statuses: session.LiveStatuses()},
		{Statuses: []session.Status{session.Completed, session.Stopped, session.Failed}, UpdatedAfter: from - 1},
	} {
		if err := t.note(ctx, q); err != nil {
			return err
		}
	}
	if t.since == 0 || from < t.since {
		t.since = from
	}
	t.listed = now
	return nil
}

// note notes whose the sessions of a query are.
func (t *Tenants) note(ctx context.Context, q session.ListQuery) error {
	for sum, err := range session.Each(ctx, t.from.List, q) {
		if err != nil {
			return err
		}
		if _, known := t.of[sum.SessionID]; known {
			continue
		}
		whose, err := t.tenantOf(ctx, sum.SessionID)
		if err != nil {
			return fmt.Errorf("session %s: %w", sum.SessionID, err) // nobody's, until it can be read
		}
		t.of[sum.SessionID] = whose
	}
	return nil
}

// tenantOf returns whose a session is, by the first record of its log.
func (t *Tenants) tenantOf(ctx context.Context, id specialist.SessionID) (string, error) {
	f := &session.Folder{}
	for _, err := range t.from.Fold(ctx, id, f) {
		if err != nil {
			return "", err
		}
		break
	}
	return t.from.Scope(f.Session()).Tenant, nil
}

// Ended returns the scopes of sessions that were open when their tenant was loaded and
// that another process has brought to their end since, each once, also beside an error.
func (t *Tenants) Ended(ctx context.Context, tenant string) (ended []spend.Scope, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.open[tenant]
	t.open[tenant] = nil
	for i, id := range open {
		s, err := t.from.Load(ctx, id)
		if err != nil {
			t.open[tenant] = append(t.open[tenant], open[i:]...)
			return ended, err
		}
		if s.Status.Live() {
			t.open[tenant] = append(t.open[tenant], id)
		} else {
			ended = append(ended, t.from.Scope(s))
		}
	}
	return ended, nil
}

// An accounting reads the log of one session for what it used of a quota.
type accounting struct {
	since  specialist.Time
	spent  func(spend.Spending)
	folder *session.Folder
	out    map[int32]specialist.Time // asks outside this process that are out, by index: when they were sent
}

// Account has spent be told what a session spends from a moment on, as quotas count it, while f folds its log
// from the beginning. The hook that f has goes on to be called.
func Account(f *session.Folder, since specialist.Time, spent func(spend.Spending)) {
	account(f, since, spent)
}

func account(f *session.Folder, since specialist.Time, spent func(spend.Spending)) *accounting {
	a := &accounting{since: since, spent: spent, folder: f, out: map[int32]specialist.Time{}}
	applied := f.Applied
	f.Applied = func(seq int64, ev session.Event, before, after spend.Book) {
		a.applied(ev, before, after)
		if applied != nil {
			applied(seq, ev, before, after)
		}
	}
	return a
}

// read folds the log of a session and reports whether the session is live.
func (a *accounting) read(ctx context.Context, from Source, id specialist.SessionID) (live bool, err error) {
	for _, err := range from.Fold(ctx, id, a.folder) {
		if err != nil {
			return false, err
		}
	}
	return a.folder.Session().Status.Live(), nil
}

// calls returns the asks that are out, for the tenant whose the session is.
func (a *accounting) calls(tenant string) (list []spend.CallState) {
	s := a.folder.Session()
	for index, at := range a.out {
		list = append(list, call(tenant, s, a.folder.Round.At(index), at))
	}
	return list
}

// CallID names a call of somebody among those of a session.
func CallID(k specialist.RoundKey, id string) string { return k.ID() + "/" + id }

// call returns an ask that is out as the ledger of quotas knows it.
func call(tenant string, s *session.Session, ask *session.AskState, at specialist.Time) spend.CallState {
	cost, in, out := ask.Remote.Charged()
	return spend.CallState{
		Scope: spend.Scope{Tenant: tenant, Session: s.ID.String()}, ID: CallID(s.Key(), ask.SpecialistID), At: at, Started: true,
		Entry: spend.Book{Calls: 1, TokensIn: in, TokensOut: out, Money: cost, Estimated: 1},
	}
}

// applied counts one event.
func (a *accounting) applied(ev session.Event, before, after spend.Book) {
	ended := a.follow(ev.At)
	used := spend.Book{
		Calls: after.Calls - before.Calls, TokensIn: after.TokensIn - before.TokensIn, TokensOut: after.TokensOut - before.TokensOut,
		Money: after.Money.Add(-before.Money),
	}
	switch d := ev.Data.(type) {
	case *session.Proposed:
		if d.Ask == 0 && ended == 0 {
			return // nobody was asked
		}
		if d.Ask == 0 {
			used.Calls = ended
		}
		used.Calls = max(used.Calls, a.declared(d.SpecialistID, ended))
	case *session.AskFailed:
		if a.unsent(d) {
			ended = 0
		} else if !session.Unpaid(d.Code) {
			used.Calls = max(used.Calls, a.declared(d.SpecialistID, ended))
		}
	case *session.Judged:
		if len(d.Order) > 0 { // of nothing nobody is asked
			used.Calls = max(used.Calls, a.declared(d.ArbiterID, ended))
		}
	case *session.Probed:
		if d.Free {
			used.TokensIn, used.TokensOut, used.Money = d.Usage.NumInputTokens, d.Usage.NumOutputTokens, d.Usage.CostUSD
		}
	case *session.Discarded:
		used.Calls = 0 // it was counted when its round was closed
	}
	if ended > 0 {
		used.Calls = max(used.Calls, ended) // an answer may have taken several
	}
	if ev.At >= a.since && used != (spend.Book{}) {
		a.spent(spend.Spending{At: ev.At, Book: used})
	}
}

// unsent reports whether an ask failed before it was sent: had it been, its estimate
// would have been charged. Of asks without an estimate it cannot be told, and they
// count.
func (a *accounting) unsent(d *session.AskFailed) bool {
	if d.Usage.Made() == 0 {
		return true // it says so
	}
	ask := a.folder.Round.At(d.Ask)
	return d.Code == session.CodeCancelled && d.Usage == (specialist.Usage{}) && ask != nil && ask.Remote.Expected() != (specialist.Usage{})
}

// declared returns 1 for a call inside this process of somebody who costs something
// by declaration, even if the answer did not say so.
func (a *accounting) declared(id string, ended int64) int64 {
	if ended > 0 || session.EstimateOf(a.folder.Current.Machine(), a.folder.Current.State, id) == 0 {
		return 0
	}
	return 1
}

// follow notes which asks are out and returns how many have ended.
func (a *accounting) follow(at specialist.Time) (ended int64) {
	o := &a.folder.Round
	for index := range a.out {
		if ask := o.At(index); ask == nil || !ask.Status.Pending() {
			delete(a.out, index)
			ended++
		}
	}
	for i := range o.Asks {
		if ask := &o.Asks[i]; ask.Status.Pending() && ask.Remote != nil {
			if _, known := a.out[ask.Index]; !known {
				a.out[ask.Index] = at
			}
		}
	}
	return ended
}
