package control_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.RunControl(t, func(*testing.T) func(*testing.T) storetest.ControlStore {
		m := control.NewMemory()
		return func(*testing.T) storetest.ControlStore { return m.Beside() }
	})
}

// TestMemoryForgets: what has expired is not held for ever, whether it was ended, forgotten,
// or begun anew.
func TestMemoryForgets(t *testing.T) {
	m := control.NewMemory()
	ctx := t.Context()
	const hour = control.ReceiptLifetime / 24
	open := control.Receipt{Key: control.ReceiptKey{Key: "open"}}
	if _, err := m.Begin(ctx, open, control.Entry{}); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		r := control.Receipt{Key: control.ReceiptKey{Key: fmt.Sprint(i % 900)}, At: specialist.Time(i) * hour}
		if _, err := m.Begin(ctx, r, control.Entry{}); err != nil {
			t.Fatal(err)
		}
		c := control.Changes{End: &control.End{Key: r.Key}, Claim: &control.Claim{QuestionID: fmt.Sprint(i), At: r.At, ExpiresAt: r.At + control.ClaimLifetime}}
		if i%3 > 0 {
			c.End.Answer = &control.Answer{Status: 200}
		}
		if err := m.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if receipts, claims := m.Kept(); receipts > 30 || claims != 1 {
		t.Errorf("of a thousand hours %d receipts and %d claims are held", receipts, claims)
	}
	if _, err := m.Begin(ctx, open, control.Entry{}); !errors.Is(err, control.ErrInProgress) {
		t.Errorf("what was not ended is %v, want ErrInProgress", err)
	}
}
