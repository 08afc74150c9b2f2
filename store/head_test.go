package store_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// head returns the head of the store, and its file as it is now.
func (a *aStore) head() (h store.Head, file []byte) {
	a.Helper()
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var err error
		h, err = s.Head(a.ctx)
		a.ok(err)
	})
	file, err := os.ReadFile(a.path)
	a.ok(err)
	return h, file
}

// against returns what verify says to a head.
func (a *aStore) against(h store.Head) (report store.Report) {
	a.Helper()
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var err error
		report, err = s.Verify(a.ctx, session.NewPrograms(), h)
		a.ok(err)
	})
	return report
}

// TestHead: what was there when a head was printed is still there, or verify says so,
// also where the rest of the file agrees with itself.
func TestHead(t *testing.T) {
	a := newFullStore(t)
	early, file := a.head()
	a.with(func(r *runner.Runner, s *store.SQLite) {
		a.force(r, a.ids[0])
		a.ok(r.Disable(a.ctx, "small", "p"))
	})
	late, _ := a.head()
	if early.Log == 0 || early.Roster != 2 || early.Audit != 3 || early.Agents != 2 || late.Log != early.Log+1 || late.Roster != 3 {
		t.Fatalf("the heads are %v and %v", early, late)
	}
	for _, h := range []store.Head{early, late, {}} {
		if h == (store.Head{}) { // that of an empty store has a hash of nothing
			continue
		}
		r := a.against(h)
		if r.Difference != nil || len(r.Unknown) != 3 {
			t.Errorf("the store does not fit its own head %v: %v", h, r.Difference)
		}
		again, err := store.ParseHead(h.String())
		if err != nil || again != h {
			t.Errorf("%s is read as %v, %v", h, again, err)
		}
	}
	a.ok(os.WriteFile(a.path, file, 0o600)) // an earlier state of the whole file
	if r := a.verify(); r.Difference != nil {
		t.Fatalf("without the head, Verify = %v", r.Difference)
	}
	if r := a.against(early); r.Difference != nil {
		t.Errorf("the earlier head does not fit: %v", r.Difference)
	}
	if r := a.against(late); r.Difference == nil || r.Difference.Kind != "head" || !strings.Contains(r.Difference.What, "it was set back") || r.Difference.Repaired {
		t.Errorf("the later head fits: %v", r.Difference)
	}
	a.with(func(r *runner.Runner, _ *store.SQLite) { // another history of the same length
		a.force(r, a.ids[1])
		a.ok(r.Disable(a.ctx, "small", "h"))
	})
	if r := a.verify(); r.Difference != nil {
		t.Fatalf("without the head, Verify = %v", r.Difference)
	}
	if r := a.against(late); r.Difference == nil || !strings.Contains(r.Difference.What, "altered, removed or replaced") {
		t.Errorf("the head of another history fits: %v", r.Difference)
	}
}

// TestHeadCovers changes what no other check can know.
func TestHeadCovers(t *testing.T) {
	for name, query := range map[string]string{
		"the order of two sessions": `UPDATE log SET id=-1 WHERE id=9; UPDATE log SET id=9 WHERE id=10; UPDATE log SET id=10 WHERE id=-1`,
		"the end of a roster":       `DELETE FROM roster_log WHERE id=(SELECT max(id) FROM roster_log)`,
		"the end of an agent_log":   `DELETE FROM agent_log WHERE id=(SELECT max(id) FROM agent_log)`,
		"the end of the audit":      `DELETE FROM llm_audit WHERE id=(SELECT max(id) FROM llm_audit)`,
	} {
		t.Run(name, func(t *testing.T) {
			a := newFullStore(t)
			h, _ := a.head()
			a.exec(query)
			r := a.against(h)
			if !slices.ContainsFunc(append(r.Differences, r.Difference), func(d *store.Difference) bool { return d != nil && d.Kind == "head" }) {
				t.Errorf("with the head, Verify = %v, %v", r.Difference, r.Differences)
			}
		})
	}
}

func TestParseHead(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, text := range []string{"", "1.2.3", "1.2.3:", "1.2:" + hash, "1.2.x:" + hash, "1.2.-3:" + hash, "1.2.3:" + hash[1:], "1.2.3:" + hash + ":1", "1.2.3.4.5:" + hash, "1.2.3.-4:" + hash, "57:" + hash} {
		if h, err := store.ParseHead(text); err == nil {
			t.Errorf("%q is read as %v", text, h)
		}
	}
}

// TestOnProgress: whoever checks or mends a store is told of all of its records.
func TestOnProgress(t *testing.T) {
	a := newStore(t)
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var done, all int64
		s.OnProgress(func(d, of int64) { done, all = d, of })
		report, err := s.Verify(a.ctx, session.NewPrograms())
		a.ok(err)
		if newest, err := s.Place(a.ctx); err != nil || done == 0 || done != all || newest != all || int64(report.Records) < all {
			t.Errorf("Verify told of %d of %d records; the newest is %d (%v)", done, all, newest, err)
		}
		done, all = 0, 0
		_, err = s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{})
		a.ok(err)
		if done == 0 || done != all {
			t.Errorf("Rebuild told of %d of %d records", done, all)
		}
		s.OnProgress(nil)
		_, err = s.Verify(a.ctx, session.NewPrograms())
		a.ok(err)
	})
}
