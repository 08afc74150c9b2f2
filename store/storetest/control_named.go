package storetest

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// What is kept by name: keys, machines, claims, step times and bindings of tokens.

func testKeys(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	list, err := one.Keys(ctx, control.Query{})
	b.ok(err)
	if len(list) != 0 {
		b.Fatalf("a new store has %d keys", len(list))
	}
	_, err = one.Key(ctx, "a")
	b.is(err, control.ErrNotFound)
	key := control.Key{ID: "a", Name: "Größe \x00", Hash: control.HashOf("a"), Tenant: "acme", CreatedBy: "local", CreatedAt: 7, ExpiresAt: 1 << 50,
		Grants: []control.Grant{{Role: control.Human, Machines: []string{"a*", "b"}, Humans: []string{"carol"}}, {Role: control.Viewer, Machines: []string{"*"}}}}
	b.commit(one, control.Changes{Keys: []control.Key{key, {ID: "b", Tenant: "other"}}})
	b.is(one.Commit(ctx, control.Changes{Keys: []control.Key{{ID: "c"}, {ID: "b"}}}), control.ErrExists)
	b.is(one.Commit(ctx, control.Changes{Keys: []control.Key{{ID: "c"}, {ID: "c"}}}), control.ErrExists)
	_, err = one.Key(ctx, "c")
	b.is(err, control.ErrNotFound)
	b.is(two.Commit(ctx, control.Changes{Revoked: []control.KeyTime{{ID: "b", At: 1}, {ID: "c", At: 1}}}), control.ErrNotFound)
	const hour = 3_600_000
	b.commit(two, control.Changes{Used: []control.KeyTime{{ID: "a", At: 2*hour + 5}, {ID: "unknown", At: 1}}})
	b.commit(two, control.Changes{Used: []control.KeyTime{{ID: "a", At: hour}}})
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 100}}})
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 200}}})
	key.LastUsed, key.RevokedAt, key.Place = 2*hour, 100, 1
	got, err := one.Key(ctx, "a")
	b.ok(err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", key) {
		b.Errorf("the key is %+v, want %+v", got, key)
	}
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 50}}})
	list, err = one.Keys(ctx, control.Query{})
	b.ok(err)
	if len(list) != 2 || list[0].ID != "a" || list[0].RevokedAt != 50 || len(list[0].Grants) != 2 || list[1].RevokedAt != 0 || list[1].LastUsed != 0 {
		b.Errorf("the keys are %+v", list)
	}
	b.commit(two, control.Changes{Keys: []control.Key{{ID: "c"}}, Revoked: []control.KeyTime{{ID: "c", At: 9}}, Used: []control.KeyTime{{ID: "c", At: hour}}})
	if got, err = two.Key(ctx, "c"); err != nil || got.RevokedAt != 9 || got.LastUsed != hour {
		b.Errorf("a key that was revoked as it was made is %+v (%v)", got, err)
	}
}

func testMachines(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	version := func(tenant, name string, n int64, digest string) control.Machine {
		return control.Machine{Tenant: tenant, Name: name, Version: n, Digest: digest, Definition: []byte(`{"is":"` + digest + `"}`), By: "key:abc", At: specialist.Time(n)}
	}
	publish := func(s control.Store, m control.Machine) error {
		return s.Commit(ctx, control.Changes{Publish: &m})
	}
	_, err := one.Machine(ctx, "acme", "m")
	b.is(err, control.ErrNotFound)
	b.is(publish(one, version("acme", "m", 2, "x")), control.ErrStale)
	b.ok(publish(one, version("acme", "m", 1, "x")))
	b.is(publish(two, version("acme", "m", 1, "y")), control.ErrStale)
	b.ok(publish(two, version("acme", "m", 2, "y")))
	b.ok(publish(two, version("acme", "team/n", 1, "z")))
	b.ok(publish(one, version("other", "m", 1, "w")))
	b.ok(publish(one, version("acme", "m", 3, "x"))) // back to the first
	b.is(publish(one, version("acme", "m", 3, "y")), control.ErrStale)
	b.is(publish(one, version("acme", "m", 5, "y")), control.ErrStale)
	show := func(list []control.Machine, err error) (text string) {
		b.Helper()
		b.ok(err)
		for _, m := range list {
			text += fmt.Sprintf("%s/%s %d %s %s;", m.Tenant, m.Name, m.Version, m.Digest, m.Definition)
		}
		return text
	}
	single := func(m control.Machine, err error) ([]control.Machine, error) { return []control.Machine{m}, err }
	b.want(show(single(two.Machine(ctx, "acme", "m"))), `acme/m 3 x {"is":"x"};`)
	b.want(show(single(two.MachineOf(ctx, "acme", "m", "y"))), `acme/m 2 y {"is":"y"};`)
	b.want(show(single(two.MachineOf(ctx, "acme", "m", "x"))), `acme/m 3 x {"is":"x"};`)
	for _, c := range [][3]string{{"acme", "m", "w"}, {"other", "m", "x"}, {"acme", "n", "x"}} {
		_, err = two.MachineOf(ctx, c[0], c[1], c[2])
		b.is(err, control.ErrNotFound)
	}
	b.want(show(two.Machines(ctx, control.Query{Tenant: "acme"})), "acme/m 3 x ;acme/team/n 1 z ;")
	b.want(show(two.Machines(ctx, control.Query{Tenant: "nobody"})), "")
	b.want(show(two.Machines(ctx, control.Query{Desc: true})), "other/m 1 w ;acme/team/n 1 z ;acme/m 3 x ;")
	b.want(show(one.Versions(ctx, "m", control.Query{Tenant: "acme"})), "acme/m 1 x ;acme/m 2 y ;acme/m 3 x ;")
	b.want(show(one.Versions(ctx, "unknown", control.Query{Tenant: "acme"})), "")
	m, err := one.MachineOf(ctx, "acme", "m", "y")
	b.ok(err)
	if m.By != "key:abc" || m.At != 2 {
		b.Errorf("version 2 is %+v", m)
	}
}

func testClaims(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	claim := func(question, subject string, at specialist.Time) *control.Claim {
		return &control.Claim{Tenant: "acme", QuestionID: question, Subject: subject, SpecialistID: subject + "-human", At: at, ExpiresAt: at + control.ClaimLifetime}
	}
	claims := func(now specialist.Time, ids ...string) (text string) {
		b.Helper()
		list, err := two.Claims(b.Context(), "acme", ids, now)
		b.ok(err)
		for _, c := range list {
			text += fmt.Sprintf("%s %s %s %d;", c.QuestionID, c.Subject, c.SpecialistID, c.At)
		}
		return text
	}
	b.commit(one, control.Changes{Claim: claim("q", "ann", 10)})
	err := two.Commit(b.Context(), control.Changes{Claim: claim("q", "bob", 20)})
	if held, is := errors.AsType[*control.ClaimedError](err); !is || held.Claim.Subject != "ann" || held.Claim.ExpiresAt != 10+control.ClaimLifetime {
		b.Errorf("a second claim is %v", err)
	}
	b.want(claims(20, "q", "r"), "q ann ann-human 10;")
	b.commit(one, control.Changes{Claim: claim("q", "ann", 30)}) // for longer
	b.want(claims(29+control.ClaimLifetime, "q"), "q ann ann-human 30;")
	b.want(claims(30+control.ClaimLifetime, "q"), "")
	b.commit(two, control.Changes{Claim: claim("q", "bob", 30+control.ClaimLifetime)})
	b.commit(two, control.Changes{Unclaim: claim("q", "ann", 0)}) // it is not hers any more
	b.commit(two, control.Changes{Claim: claim("r", "bob", 40)})
	b.want(claims(40, "r", "q"), "r bob bob-human 40;q bob bob-human 1800030;")
	b.want(claims(40), "")
	of := func(tenant, subject string, now specialist.Time, limit int, humans ...string) (text string) {
		b.Helper()
		list, err := two.ClaimsOf(b.Context(), tenant, subject, humans, now, limit)
		b.ok(err)
		for _, c := range list {
			text += c.QuestionID + ";"
		}
		return text
	}
	b.want(of("acme", "bob", 40, 9), "r;q;")
	b.want(of("acme", "bob", 40, 1), "r;")
	b.want(of("acme", "", 40, 9, "bob-human", "ann-human"), "r;q;")
	b.want(of("acme", "ann", 40, 9, "ann-human"), "")
	b.want(of("other", "bob", 40, 9, "bob-human"), "")
	b.want(of("acme", "bob", 40+control.ClaimLifetime, 9), "q;")
	if list, err := one.Claims(b.Context(), "other", []string{"q"}, 40); err != nil || len(list) != 0 {
		b.Errorf("another tenant's claims are %v (%v)", list, err)
	}
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.commit(one, control.Changes{Unclaim: claim("r", "", 0)})
	b.commit(one, control.Changes{Unclaim: claim("unknown", "", 0)})
	b.want(claims(40, "q", "r"), "")

	assign := func(subject, human, as string, at specialist.Time) *control.Claim {
		return &control.Claim{Tenant: "acme", QuestionID: "q", Subject: subject, SpecialistID: human, At: at, ExpiresAt: at + control.AssignmentLifetime, Note: "see " + human, Assigned: true, As: as}
	}
	refused := func(store control.Store, c *control.Claim) {
		b.Helper()
		err := store.Commit(b.Context(), control.Changes{Claim: c})
		if held, is := errors.AsType[*control.ClaimedError](err); !is || !held.Claim.Assigned || held.Claim.Note == "" {
			b.Errorf("%+v beside an assignment: %v", c, err)
		}
	}
	b.commit(one, control.Changes{Claim: claim("q", "lead", 40)})
	b.commit(two, control.Changes{Claim: assign("lead", "bob-human", "", 50)}) // who is at it gives it to another
	list, err := one.Claims(b.Context(), "acme", []string{"q"}, 49+control.AssignmentLifetime)
	b.ok(err)
	if want := assign("lead", "bob-human", "", 50); len(list) != 1 || list[0] != *want {
		b.Errorf("the assignment is %+v", list)
	}
	b.want(of("acme", "lead", 60, 9), "") // it is not its own
	b.want(of("acme", "", 60, 9, "bob-human"), "q;")
	refused(one, claim("q", "lead", 60)) // looking at it undoes nothing
	refused(one, claim("q", "bob", 60))
	refused(one, assign("ann", "ann-human", "ann-human", 60))
	refused(one, assign("ann", "ann-human", "", 60))
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.want(claims(60, "q"), "q lead bob-human 50;")
	b.commit(two, control.Changes{Claim: assign("bob", "ann-human", "bob-human", 60)}) // who has got it passes it on
	b.want(claims(60, "q"), "q bob ann-human 60;")
	b.commit(one, control.Changes{Claim: assign("bob", "eve-human", "", 70)}) // and says otherwise
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.want(claims(70, "q"), "")
	b.commit(one, control.Changes{Claim: assign("lead", "bob-human", "", 80)})
	b.commit(one, control.Changes{Claim: claim("q", "ann", 80+control.AssignmentLifetime)}) // it is over
	b.want(claims(80+control.AssignmentLifetime, "q"), "q ann ann-human 604800080;")
}

func testStepTimes(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	stepped := func(tenant, session string) control.StepTime {
		b.Helper()
		t, err := two.StepTime(b.Context(), tenant, session)
		b.ok(err)
		return t
	}
	for _, want := range []control.StepTime{{Tenant: "acme", SessionID: "s", Msec: 60_000}, {Tenant: "acme", SessionID: "s", Msec: 120_000}, {Tenant: "acme", SessionID: "s", Resumes: 1, Msec: 5}, {Tenant: "other", SessionID: "s", Resumes: 2, Msec: 1 << 40}} {
		b.commit(one, control.Changes{Stepped: &want})
		if got := stepped(want.Tenant, want.SessionID); got != want {
			b.Errorf("of %+v is kept %+v", want, got)
		}
	}
	if got := stepped("acme", "s"); got.Msec != 5 {
		b.Errorf("after that of another tenant it is %+v", got)
	}
	if got := stepped("acme", "none"); got != (control.StepTime{}) {
		b.Errorf("of a session of which nothing was kept: %+v", got)
	}
}

func testBindings(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	if _, err := two.Binding(b.Context(), "A_TOKEN"); !errors.Is(err, control.ErrNotFound) {
		b.Errorf("what nobody has bound is %v", err)
	}
	first := control.Binding{Variable: "A_TOKEN", Host: "a.example.com", At: 7}
	b.commit(one, control.Changes{Bind: &first})
	for _, by := range []control.Store{one, two} { // whoever comes second
		err := by.Commit(b.Context(), control.Changes{Bind: &control.Binding{Variable: "A_TOKEN", Host: "b.example.com", At: 8}})
		if !errors.Is(err, control.ErrExists) {
			b.Errorf("another binding is %v", err)
		}
		if got, err := by.Binding(b.Context(), "A_TOKEN"); err != nil || got != first {
			b.Errorf("the token is bound as %+v (%v)", got, err)
		}
	}
	b.commit(two, control.Changes{Bind: &control.Binding{Variable: "a_token", Host: "b.example.com", At: 9}})
}
