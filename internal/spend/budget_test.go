package spend_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
)

const wholeBudget = `{"soft_limit_tokens":5,"hard_limit_tokens":10,"hard_limit_calls":3,"soft_limit_usd":0.25,"hard_limit_usd":0.5,
	"hard_limit_wall_ms":60000,"round_limit_wall_ms":1000,"no_progress_ms":500,"mode":"observe","debit_probes":false,
	"probe_share_max":0.125,"reserve_ttl_ms":1,"reserve_mode":"static"}`

func TestParseBudget(t *testing.T) {
	b, problems := spend.ParseBudget([]byte(`{}`))
	share := exact.One / 5
	want := &spend.Budget{Mode: spend.ModeHardKill, DebitProbes: true, ProbeShareMax: &share, ReserveTTLMsec: 60_000, ReserveMode: spend.ReserveAdaptive}
	if len(problems) > 0 || !reflect.DeepEqual(b, want) {
		t.Errorf("{}: %+v, %v", b, problems)
	}
	b, problems = spend.ParseBudget([]byte(wholeBudget))
	want = &spend.Budget{SoftTokens: new(int64(5)), HardTokens: new(int64(10)), HardCalls: new(int64(3)), SoftUSD: new(exact.Dollar / 4), HardUSD: new(exact.Dollar / 2),
		WallMsec: new(int64(60000)), RoundWallMsec: new(int64(1000)), NoProgressMsec: new(int64(500)), Mode: spend.ModeObserve, DebitProbes: false,
		ProbeShareMax: new(exact.One / 8), ReserveTTLMsec: 1, ReserveMode: spend.ReserveStatic}
	if len(problems) > 0 || !reflect.DeepEqual(b, want) {
		t.Errorf("everything: %+v, %v", b, problems)
	}
}

func TestParseBudgetProblems(t *testing.T) {
	for _, c := range []struct{ section, want string }{
		{`7`, ` wrong-type budget must be an object`},
		{``, ` bad-json budget is not one JSON value: EOF`},
		{`{"hard_limit_tokens":-1}`, `/hard_limit_tokens out-of-range hard_limit_tokens is -1, not a whole number from 0`},
		{`{"hard_limit_calls":1.5}`, `/hard_limit_calls out-of-range hard_limit_calls is 1.5, not a whole number from 0`},
		{`{"soft_limit_tokens":"5"}`, `/soft_limit_tokens out-of-range soft_limit_tokens is "5", not a whole number from 0`},
		{`{"hard_limit_usd":-0.01}`, `/hard_limit_usd out-of-range hard_limit_usd is -0.01, not an amount of US dollars from 0`},
		{`{"hard_limit_wall_ms":null}`, `/hard_limit_wall_ms out-of-range hard_limit_wall_ms is null, not a whole number from 0`},
		{`{"reserve_ttl_ms":0}`, `/reserve_ttl_ms out-of-range reserve_ttl_ms is 0, not a whole number from 1`},
		{`{"soft_limit_tokens":11,"hard_limit_tokens":10}`, `/soft_limit_tokens contradiction soft_limit_tokens is 11, more than hard_limit_tokens, which is 10 (a soft limit warns before the hard one stops)`},
		{`{"soft_limit_usd":0.2,"hard_limit_usd":0.1}`, `/soft_limit_usd contradiction soft_limit_usd is 0.2, more than hard_limit_usd, which is 0.1 (a soft limit warns before the hard one stops)`},
		{`{"mode":"kill"}`, `/mode bad-value mode is "kill" (it may be ["hard_kill" "observe"])`},
		{`{"mode":""}`, `/mode bad-value mode is "" (it may be ["hard_kill" "observe"])`},
		{`{"reserve_mode":"dynamic"}`, `/reserve_mode bad-value reserve_mode is "dynamic" (it may be ["static" "adaptive"])`},
		{`{"debit_probes":"yes"}`, `/debit_probes wrong-type debit_probes must be true or false`},
		{`{"probe_share_max":1.5}`, `/probe_share_max out-of-range probe_share_max is 1.5, not a number from 0 to 1`},
		{`{"probe_share_max":-0.1}`, `/probe_share_max out-of-range probe_share_max is -0.1, not a number from 0 to 1`},
		{`{"hard_limit_token":1}`, `/hard_limit_token unknown-field budget has no field "hard_limit_token" (did you mean "hard_limit_tokens"?)`},
		{`{"hard_limit_tokens":1,"hard_limit_tokens":2}`, ` bad-json budget is not one JSON value: duplicate member "hard_limit_tokens"`},
		{`{"mode":1,"zzz":0}`, "/mode bad-value mode is 1 (it may be [\"hard_kill\" \"observe\"])\n/zzz unknown-field budget has no field \"zzz\""},
	} {
		b, problems := spend.ParseBudget([]byte(c.section))
		if got := listed(problems); got != c.want || b != nil {
			t.Errorf("%s:\n got %s\nwant %s", c.section, got, c.want)
		}
	}
	if b, problems := spend.ParseBudget([]byte(`{"x-note":[],"soft_limit_tokens":10,"hard_limit_tokens":10,"hard_limit_usd":0}`)); b == nil || *b.HardUSD != 0 {
		t.Errorf("equal limits, and one of 0: %v", problems)
	}
}

// FuzzParseBudget: nothing panics, a refusal says why, and what was accepted is
// written and read as the same budget, which a ledger takes.
func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{`{}`, wholeBudget, `{"mode":"observe"}`, `{"hard_limit_usd":1e-13}`, `{"hard_limit_tokens":1e3}`, `[]`, `{"probe_share_max":1e-10}`, `{"a":{"b":[1]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, section []byte) {
		b, problems := spend.ParseBudget(section)
		if (b == nil) != (len(problems) > 0) {
			t.Fatalf("%v with %v", b, problems)
		}
		for _, p := range problems {
			if p.Code == "" || p.Message == "" || p.Path != "" && !strings.HasPrefix(p.Path, "/") {
				t.Fatalf("problem %+v", p)
			}
		}
		if b == nil {
			return
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := spend.ParseBudget(text)
		if len(problems) > 0 || !reflect.DeepEqual(b, again) {
			t.Fatalf("%s was read as %s: %v", section, text, problems)
		}
		if _, err := spend.NewLedger(spend.LedgerConfig{Now: (&clock{}).read, Budget: b}); err != nil {
			t.Fatal(err)
		}
	})
}
