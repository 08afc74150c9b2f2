package control_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// TestCredential: what is made is read again, its form is the one that is documented, and no
// two are alike.
func TestCredential(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id, credential := control.NewCredential(rand.Reader)
		if got, err := control.CredentialID(credential); err != nil || got != id {
			t.Fatalf("CredentialID(%q) = %q, %v, want %q", credential, got, err, id)
		}
		if len(id) != 12 || !strings.HasPrefix(credential, "dk_"+id+"_") || len(credential) != 3+12+1+43+1+8 || seen[id] || seen[credential] {
			t.Fatalf("the credential is %q, its id %q", credential, id)
		}
		seen[id], seen[credential] = true, true
	}
	if id, credential := control.NewCredential(bytes.NewReader(make([]byte, 44))); id != "000000000000" || credential != "dk_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_c5d231d3" {
		t.Errorf("of zeros it is %q: those that were shown before are not read any more", credential)
	}
}

// TestCredentialTypingErrors: whatever character is changed, left out, doubled or swapped
// with the next one, it is noticed, and the error repeats nothing.
func TestCredentialTypingErrors(t *testing.T) {
	_, credential := control.NewCredential(rand.Reader)
	secret := credential[16:59]
	wrong := map[string]bool{"": true, "dk_": true, credential + "\n": true, " " + credential: true, strings.ToUpper(credential): true, "Bearer " + credential: true}
	for i := range len(credential) {
		wrong[credential[:i]] = true
		wrong[credential[:i]+credential[i+1:]] = true
		wrong[credential[:i]+credential[i:i+1]+credential[i:]] = true
		for _, c := range []string{"x", "0", "_", "\x00", "é"} {
			wrong[credential[:i]+c+credential[i+1:]] = true
		}
		if i > 0 {
			wrong[credential[:i-1]+credential[i:i+1]+credential[i-1:i]+credential[i+1:]] = true
		}
	}
	delete(wrong, credential)
	for text := range wrong {
		_, err := control.CredentialID(text)
		if !errors.Is(err, control.ErrCredential) {
			t.Errorf("CredentialID(%q) = %v, want ErrCredential", text, err)
		} else if strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func FuzzCredentialID(f *testing.F) {
	_, credential := control.NewCredential(bytes.NewReader(make([]byte, 44)))
	f.Add(credential)
	f.Add("dk__")
	f.Add(strings.Repeat("_", len(credential)))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := control.CredentialID(text)
		if err != nil {
			if !errors.Is(err, control.ErrCredential) || id != "" {
				t.Fatalf("%q is %q and %v", text, id, err)
			}
			return
		}
		if !strings.HasPrefix(text, "dk_"+id+"_") || len(id) != 12 || len(text) != len(credential) {
			t.Fatalf("%q has the id %q", text, id)
		}
	})
}

func TestAdmit(t *testing.T) {
	id, credential := control.NewCredential(rand.Reader)
	_, other := control.NewCredential(rand.Reader)
	key := control.Key{ID: id, Hash: control.HashOf(credential)}
	expires, revoked := key, key
	expires.ExpiresAt = 100
	revoked.RevokedAt, revoked.ExpiresAt = 100, 100
	for _, c := range []struct {
		key        control.Key
		credential string
		now        specialist.Time
		want       error
	}{
		{key, credential, 1 << 40, nil},
		{key, other, 0, control.ErrSecret},
		{key, "", 0, control.ErrSecret},
		{expires, credential, 99, nil},
		{expires, credential, 100, control.ErrExpired},
		{revoked, credential, 99, nil},
		{revoked, credential, 100, control.ErrRevoked},
		{revoked, other, 100, control.ErrSecret}, // whoever guesses is told nothing
		{control.Key{}, "", 0, control.ErrSecret},
	} {
		if err := c.key.Admit(c.credential, c.now); !errors.Is(err, c.want) {
			t.Errorf("at %d, %+v admits with %v, want %v", c.now, c.key, err, c.want)
		}
	}
}

func TestHash(t *testing.T) {
	h := control.HashOf("abc")
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if h.String() != want || h != control.HashOf([]byte("abc")) {
		t.Errorf("the hash of abc is %s", h)
	}
	data, err := json.Marshal(map[string]control.Hash{"hash": h})
	var back map[string]control.Hash
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || back["hash"] != h {
		t.Errorf("%s is read as %v (%v)", data, back, err)
	}
	for _, text := range []string{"", "sha256:", want[7:], want[:70], want + "00", "sha256:" + strings.Repeat("g", 64), "SHA256:" + want[7:]} {
		if err := h.UnmarshalText([]byte(text)); err == nil || h.String() != want {
			t.Errorf("%q is read as %s", text, h)
		}
	}
}

func TestGrantCheck(t *testing.T) {
	for _, c := range []struct {
		grant control.Grant
		want  string
	}{
		{control.Grant{Role: control.Viewer, Machines: []string{"*"}}, ""},
		{control.Grant{Role: control.Admin, Machines: []string{"a", "b*"}, Humans: []string{"carol"}}, ""},
		{control.Grant{Role: control.Human, Machines: []string{"*"}, Humans: []string{"carol", "dan"}}, ""},
		{control.Grant{Role: control.Specialist, Machines: []string{"*"}, Specialists: []string{"model-1"}}, ""},
		{control.Grant{Role: "root", Machines: []string{"*"}}, `role "root": there are viewer, operator, human, specialist, auditor, admin`},
		{control.Grant{Role: control.Viewer}, "machines: name at least one"},
		{control.Grant{Role: control.Viewer, Machines: []string{""}}, "none of them is"},
		{control.Grant{Role: control.Human, Machines: []string{"*"}}, "whom it may rule as"},
		{control.Grant{Role: control.Specialist, Machines: []string{"*"}}, "whom it may propose as"},
		{control.Grant{Role: control.Operator, Machines: []string{"*"}, Humans: []string{"carol"}}, "may rule, not operator"},
		{control.Grant{Role: control.Human, Machines: []string{"*"}, Humans: []string{"carol"}, Specialists: []string{"p"}}, "may propose, not human"},
	} {
		err := c.grant.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.grant, err, c.want)
		}
	}
}

// TestGlobs compares matches with path.Match, where both mean the same: names without a
// slash, globs of letters and stars.
func TestGlobs(t *testing.T) {
	rng := mathrand.New(mathrand.NewPCG(1, 2))
	text := func(letters string) string {
		b := make([]byte, rng.IntN(7))
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return string(b)
	}
	hits := 0
	for range 100_000 {
		glob, name := text("ab*"), text("ab")
		want, err := path.Match(glob, name)
		if got := control.Matches(glob, name); err != nil || got != want {
			t.Fatalf("%q covers %q: %t, want %t (%v)", glob, name, got, want, err)
		} else if got {
			hits++
		}
	}
	if hits < 1000 {
		t.Errorf("only %d names were covered", hits)
	}
	for glob, want := range map[string]bool{"team/*": true, "*": true, "team": false, "t?am/x": false, "[t]eam/x": false} {
		if g := (control.Grant{Machines: []string{"other", glob}}); g.Covers("team/x") != want {
			t.Errorf("%q covers team/x: %t", glob, !want)
		}
	}
}

func TestHour(t *testing.T) {
	for at, want := range map[specialist.Time]specialist.Time{0: 0, 1: 0, 3_599_999: 0, 3_600_000: 3_600_000, -1: -3_600_000} {
		if got := (control.KeyTime{At: at}).Hour(); got != want {
			t.Errorf("the hour of %d is %d, want %d", at, got, want)
		}
	}
}

func ExampleKey_Admit() {
	id, credential := control.NewCredential(rand.Reader) // shown once
	key := control.Key{ID: id, Hash: control.HashOf(credential), ExpiresAt: 2_000_000_000_000}

	fmt.Println(key.Admit(credential, 1_800_000_000_000))
	fmt.Println(key.Admit(credential, 2_000_000_000_000))
	// Output:
	// <nil>
	// the key has expired
}
