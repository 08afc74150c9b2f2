package fold_test

import (
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
)

// TestBehindErased: behind a record that cannot be read, one that does not give its hash is whole if a later record says
// that it was erased and what it is now, and damage if it is something else.
func TestBehindErased(t *testing.T) {
	const stream = "s"
	for now, want := range map[string]int64{`["erased"]`: 0, `["altered"]`: 2} {
		b := fold.Behind{Stream: stream, Head: session.Hash{1}}
		was := session.Chain(b.Head, stream, []byte(`["it was"]`))
		says := session.AppendEvents(nil, specialist.RoundKey{}, 3, []session.Event{{At: 1, Data: &session.Erased{First: 2, Last: 2, Note: "asked for",
			Records: []session.ErasedRecord{{Seq: 2, Sum: session.ErasedSum(was, stream, []byte(`["erased"]`))}}}}})
		b.Add(&session.StoredRecord{First: 2, Events: []byte(now), Hash: was}, nil)
		b.Add(&session.StoredRecord{First: 3, Events: says, Hash: session.Chain(was, stream, says)}, nil)
		if first, problem := b.Problem(); first != want || (problem == nil) != (want == 0) {
			t.Errorf("of %s is found %v at event %d, want %d", now, problem, first, want)
		}
	}
}
