package sim_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A mutation is a defect that is put into the simulated world, to see which invariant
// names it: a simulation whose checks cannot fail proves nothing.
type mutation struct {
	name  string
	says  string
	names []string // the invariants, one of which must fail
	// alone leaves out the comparisons of log and session, which would name every
	// record that was tampered with: the others must find it by themselves.
	alone  bool
	commit func(d *disk, c *session.Change) (*session.Change, bool) // what is stored instead; false if nothing is
}

func (m *mutation) is(name string) bool { return m != nil && m.name == name }

// mutations are defects of the engine's past, and of its neighbours.
var mutations = []mutation{
	{name: "service forgets its keys", says: "a request that is repeated under its key is paid again", names: []string{"charges per ask"}},
	{name: "snapshot lacks a lesson", says: "a ledger is written down without the newest lesson", names: []string{ledgerKept}},
	{name: "snapshot lacks a decision", says: "a tally is written down without the newest record", names: []string{talliesKept}},
	{name: "snapshot lacks a record", says: "the first record behind a snapshot of a session is not added", names: []string{snapshotsHold}},
	{name: "human does not pin the round", says: "a ruling is for whichever round is open when it arrives", names: []string{"human acts"}},
	{name: "human does not pin the question", says: "a ruling names the round, and not the question that was seen", names: []string{"questions as seen"}},
	{name: "quorum is not asked", says: "one of the panel is enough, whatever the machine says", names: []string{"quorum"}},
	{name: "required is forgotten", says: "nobody is required, whatever the machine says", names: []string{"quorum"}},
	{name: "second human is not waited for", says: "a human's word is executed at once where another has to agree", names: []string{"two humans agree"}},
	{name: "approvals are forgotten", says: "no transition takes approvals, whatever the machine says", names: []string{approvalsGiven}},
	{name: "one approval is enough", says: "one human is enough where more have to choose the transition", names: []string{approvalsGiven}},
	{name: "a group is forgotten", says: "nobody is needed for one of several groups", names: []string{approvalsGiven}},
	{name: "exclude is forgotten", says: "nobody is excluded, whatever the machine says", names: []string{approvalsGiven, deciderRules}},
	{name: "deciders are forgotten", says: "every human decides, whatever the machine says", names: []string{deciderRules}},
	{name: "conditions are forgotten", says: "every transition may be chosen, whatever the machine says", names: []string{conditionsHold}},
	{name: "data are written otherwise", says: "the log has another value than what was set", alone: true, names: []string{dataWritten},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			if next.Data != nil {
				next.Data = []byte(`{"count":99}`)
			}
			return &next
		})},
	{name: "consensus does not wait", says: "what humans have agreed on is recorded as what programs did", alone: true, names: []string{pendingHolds},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			if len(next.Authors) > 1 {
				next.How, next.IsHuman, next.Authors = session.ByConsensus, false, nil
			}
			return &next
		})},
	{name: "due is forgotten", says: "no state is ever due, whatever the machine says", names: []string{timersCome}},
	{name: "timer comes early", says: "the log has another moment than the state says", alone: true, names: []string{timersCome},
		commit: edit(func(e *session.RoundOpened) *session.RoundOpened {
			next := *e
			if next.Due != nil && next.Due.At != 0 {
				next.Due = &session.Due{At: next.Due.At - 1000}
			}
			return &next
		})},
	{name: "waits are forgotten", says: "everybody is asked where nobody is to be", names: []string{waitsWait}},
	{name: "fork goes on from elsewhere", says: "the log says another event of the other session than the fork goes on from", alone: true, names: []string{forkedRight},
		commit: edit(func(e *session.Created) *session.Created {
			next := *e
			if from := next.Options.ForkedFrom; from != nil {
				next.Options.ForkedFrom = &session.ForkedFrom{SessionID: from.SessionID, Sequence: 2, Round: from.Round}
			}
			return &next
		})},
	{name: "gate is not asked", says: "what the truth gate wants is executed at once", names: []string{"gates are heard"}},
	{name: "probe is charged twice", says: "the charge of a question of the guards is recorded twofold", alone: true, names: []string{"charges per ask"},
		commit: edit(func(e *session.Probed) *session.Probed {
			next := *e
			next.Usage.CostUSD *= 2
			return &next
		})},
	{name: "probe is asked again", says: "the log does not know to which question of the guards it has the answer", alone: true, names: []string{"each answer once"},
		commit: edit(func(e *session.Probed) *session.Probed {
			next := *e
			next.Question = ""
			return &next
		})},
	{name: "probe is not reserved", says: "a question of the guards is sent, and the log does not have it", alone: true, names: []string{askedFirst},
		commit: func(_ *disk, c *session.Change) (*session.Change, bool) {
			next := *c
			next.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e session.Event) bool {
				d, ok := e.Data.(*session.Asked)
				return ok && d.Asks[0].OfGuards()
			})
			return &next, len(next.Events) > 0
		}},
	{name: "nobody has ruled", says: "a ruling is recorded without who gave it", alone: true, names: []string{whoActed},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			next.Actor = nil
			return &next
		})},
	{name: "nobody has looked at it again", says: "a review is recorded without who gave it", alone: true, names: []string{whoActed},
		commit: edit(func(e *session.Reviewed) *session.Reviewed {
			next := *e
			next.Actor = nil
			return &next
		})},
	{name: "mistakes still count", says: "what a ruling has taught stays when it is taken back", alone: true, names: []string{takenBack},
		commit: edit(func(e *session.Retracted) *session.Retracted {
			next := *e
			next.Comparisons = nil
			return &next
		})},
	{name: "a move is a step", says: "a session that is moved goes on in another state", alone: true, names: []string{movedOnly},
		commit: edit(func(e *session.Moved) *session.Moved {
			next := *e
			for i := range e.Program.Machine.States() {
				if s := &e.Program.Machine.States()[i]; s != e.State && !s.Terminal() {
					next.State = s
				}
			}
			return &next
		})},
	{name: "nobody has moved it", says: "a move is recorded without who did it", alone: true, names: []string{whoActed},
		commit: edit(func(e *session.Moved) *session.Moved {
			next := *e
			next.Actor = nil
			return &next
		})},
	{name: "nobody has handed it over", says: "another driver is recorded without who said so", alone: true, names: []string{whoActed},
		commit: edit(func(e *session.DriverChanged) *session.DriverChanged {
			next := *e
			next.Actor = nil
			return &next
		})},
	{name: "handed to nobody", says: "a session is handed to another driver than was said", alone: true, names: []string{handedOver},
		commit: edit(func(e *session.DriverChanged) *session.DriverChanged {
			next := *e
			if next.Driver == session.DriverPool {
				next.Driver = session.DriverTemporal
			} else {
				next.Driver = session.DriverPool
			}
			return &next
		})},
	{name: "one person counts as two", says: "a person who acts under two ids is not known to be one", alone: true, names: []string{whoActed}},
	{name: "somebody else raises", says: "a limit is raised in the name of nobody who may", alone: true, names: []string{"human acts"},
		commit: edit(func(e *session.Resumed) *session.Resumed {
			next := *e
			if len(next.Raised) > 0 {
				next.SpecialistID = "h9"
			}
			return &next
		})},
	{name: "verdict is charged twice", says: "the charge of an arbiter's verdict is recorded twofold", alone: true, names: []string{"charges per ask"},
		commit: edit(func(e *session.Judged) *session.Judged {
			next := *e
			next.Usage.CostUSD *= 2
			return &next
		})},
	{name: "letter is flipped", says: "a letter of a record is another when it is read", alone: true, names: []string{"hash chain"}},
	{name: "cancelled sessions go on", says: "a session that was cancelled executes what was under way", alone: true, names: []string{"ended stays ended"},
		commit: func(d *disk, c *session.Change) (*session.Change, bool) {
			now := d.stored(c)
			if c.Before == nil || now == nil || now.Status != session.Stopped || now.Sequence == c.Before.Sequence {
				return c, true
			}
			forced := *c
			forced.Before, forced.First = now, now.Sequence+1
			return &forced, true
		}},
	{name: "store loses a compare-and-swap", says: "a commit on a session that has moved on is accepted", alone: true, names: []string{"each transition once", "each answer once", "ended stays ended", "human acts"},
		commit: func(d *disk, c *session.Change) (*session.Change, bool) {
			now := d.stored(c)
			if c.Before == nil || now == nil || now.Sequence == c.Before.Sequence {
				return c, true
			}
			forced := *c
			forced.Before, forced.First = now, now.Sequence+1
			return &forced, true
		}},
	{name: "store forgets a commit", says: "a commit is acknowledged and not there", names: []string{"log equals fold"},
		commit: func(d *disk, c *session.Change) (*session.Change, bool) { return c, c.First != 9 }},
	{name: "answer is charged twice", says: "the charge of an answer is recorded twofold", alone: true, names: []string{"charges per ask"},
		commit: edit(func(e *session.Proposed) *session.Proposed {
			next := *e
			next.Usage.CostUSD *= 2
			return &next
		})},
	{name: "discount", says: "an answer that comes late gives back what nobody was charged", alone: true, names: []string{"never negative", "charges per ask"},
		commit: edit(func(e *session.Discarded) *session.Discarded {
			next := *e
			next.Usage.CostUSD, next.Charged, next.Usage.Given = 1, 10*exact.Dollar, specialist.CostGiven
			return &next
		})},
	{name: "somebody else rules", says: "a ruling is recorded under another name", alone: true, names: []string{"human acts"},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			if next.IsHuman {
				next.SpecialistID = "h9"
			}
			return &next
		})},
	{name: "irreversible by consensus", says: "what cannot be undone is executed because programs agree", alone: true, names: []string{"irreversible needs a human"},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			if next.Transition.Irreversible {
				next.How, next.IsHuman = session.ByConsensus, false
			}
			return &next
		})},
	{name: "audit is not waited for", says: "a round that is drawn for an audit is executed because programs agree", alone: true, names: []string{"audited rounds wait"},
		commit: edit(func(e *session.Executed) *session.Executed {
			next := *e
			if next.IsHuman && !next.Transition.Irreversible {
				next.How, next.IsHuman = session.ByConsensus, false
			}
			return &next
		})},
	{name: "sessions rise again", says: "an answer that comes late has a completed session go on", alone: true, names: []string{"ended stays ended"},
		commit: func(d *disk, c *session.Change) (*session.Change, bool) {
			if now := d.stored(c); now != nil && now.Status == session.Completed && c.Before != nil && c.Before.Sequence == now.Sequence {
				again := *c
				again.Events = append(slices.Clone(c.Events), session.Event{At: c.After.UpdatedAt, Data: &session.Resumed{Actor: operator}})
				return &again, true
			}
			return c, true
		}},
	{name: "owners are taken for lost", says: "an ask is taken over from a process that lives", names: []string{"living owners are left alone"}},
	{name: "hard limit is not asked", says: "whoever would break the limit is asked all the same", names: []string{"admitted within the limit", limitHolds},
		commit: nil},
}

// stored returns the session of a change as the store has it; nil if it has none.
func (d *disk) stored(c *session.Change) *session.Session {
	s, err := d.Store.Load(context.Background(), session.NewPrograms(), c.After.ID)
	if err != nil {
		return nil
	}
	return s
}

// edit makes a mutation that records events of one kind otherwise.
func edit[E session.Data](f func(E) E) func(*disk, *session.Change) (*session.Change, bool) {
	return func(_ *disk, c *session.Change) (*session.Change, bool) {
		next := *c
		next.Events = slices.Clone(c.Events)
		for i := range next.Events {
			if e, ok := next.Events[i].Data.(E); ok {
				next.Events[i].Data = f(e)
			}
		}
		return &next, true
	}
}

// mutationSeeds is how many seeds a defect is looked for in.
const mutationSeeds = 400

// TestMutations puts one defect after another into the world. An invariant that is
// made for it must fail for some seed, and none that is not before it.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			others := map[string]int{}
			for seed := uint64(1); seed <= mutationSeeds; seed++ {
				s := usual(seed)
				s.mutation = &m
				r := play(t, s)
				switch {
				case r.failed == nil:
				case slices.Contains(m.names, r.failed.invariant):
					t.Logf("seed %d: %s: %v", seed, r.failed.invariant, r.failed.err)
					return
				default:
					others[r.failed.invariant]++
				}
			}
			t.Errorf("%s: none of %q has failed in %d seeds, but %v", m.says, m.names, mutationSeeds, others)
		})
	}
}

// TestInvariantsCanFail: each invariant of a record is named by some mutation.
func TestInvariantsCanFail(t *testing.T) {
	for _, v := range each {
		named := slices.ContainsFunc(mutations, func(m mutation) bool { return slices.Contains(m.names, v.name) })
		if !named {
			t.Errorf("no mutation names the invariant %q", v.name)
		}
		if v.says == "" {
			t.Errorf("the invariant %q does not say what it is", v.name)
		}
	}
}
