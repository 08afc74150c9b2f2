package pack_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// records returns the records of all golden logs.
func records(tb testing.TB) (list [][]byte) {
	files, err := filepath.Glob("../../../session/testdata/golden/*.jsonl.gz")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no golden logs: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			tb.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 1<<26)
		for lines.Scan() {
			var of struct{ Records []json.RawMessage }
			if json.Unmarshal(lines.Bytes(), &of) == nil {
				for _, r := range of.Records {
					list = append(list, r)
				}
			}
		}
		if err := lines.Err(); err != nil {
			tb.Fatal(err)
		}
	}
	return list
}

// TestPack: every record comes back as it was, a third as large in all, and what cannot be packed stays
// as it is.
func TestPack(t *testing.T) {
	var before, after int
	buffer := []byte("before")
	for _, r := range records(t) {
		packed := pack.Append(buffer[:6], r)
		if string(packed[:6]) != "before" {
			t.Fatal("what was in the buffer is gone")
		}
		back, err := pack.Unpack(nil, packed[6:])
		if err != nil || !bytes.Equal(back, r) {
			t.Fatalf("%s comes back as %s: %v", r, back, err)
		}
		before, after = before+len(r), after+len(packed)-6
	}
	if after*3 > before {
		t.Errorf("%d B became %d, more than a third", before, after)
	}
	if got := pack.Append(nil, []byte(`[{}]`)); string(got) != `[{}]` {
		t.Errorf("[{}] became %q", got)
	}
}

// TestFrozen: a dictionary that records were packed with never changes.
func TestFrozen(t *testing.T) {
	text, err := os.ReadFile("1.dict")
	if err != nil {
		t.Fatal(err)
	}
	const want = "35006985feb3a7ccf716aaa4e9cc9e0f18ea3395d61ca7287f9ca84e6cc43ce9"
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want || len(text) > 4096 {
		t.Errorf("the first dictionary has %d bytes and sum %x, it had %s: add another one with another codec byte", len(text), sum, want)
	}
}

// TestUnknown: what a newer program has packed is said to be that, and what is damaged, empty or too
// large is no record.
func TestUnknown(t *testing.T) {
	for _, c := range []byte{0, 2, '{', 0xff} {
		_, err := pack.Unpack(nil, []byte{c, 1, 2})
		if e, ok := errors.AsType[*session.NewerError](err); !ok || !strings.Contains(e.Has, fmt.Sprintf("form %d", c)) {
			t.Errorf("codec %d: %v", c, err)
		}
	}
	large := s2.Encode(nil, make([]byte, pack.Largest+1))
	for name, stored := range map[string][]byte{"nothing": {}, "no length": {1}, "cut": {1, 200, 1, 0}, "too large": append([]byte{1}, large...)} {
		if got, err := pack.Unpack(nil, stored); err == nil {
			t.Errorf("%s is read as %d bytes", name, len(got))
		}
	}
}

// TestRestored: the first byte of a record that was altered is found by what the record should be; nothing else is.
func TestRestored(t *testing.T) {
	events := []byte(`[` + strings.Repeat(`{"seq":1,"kind":"note"},`, 50) + `{}]`)
	right := func(got []byte) bool { return bytes.Equal(got, events) }
	packed := pack.Append(nil, events)
	for want, stored := range map[byte][]byte{'[': bytes.Clone(events), 1: bytes.Clone(packed)} {
		if stored[0] != want {
			t.Fatalf("%q is stored as %x", want, stored)
		}
		stored[0] = 7
		if form, ok := pack.Restored(stored, right); !ok || form != want || stored[0] != 7 {
			t.Errorf("of %q is found %q (%v)", want, form, ok)
		}
		stored[9] ^= 1
		if form, ok := pack.Restored(stored, right); ok {
			t.Errorf("of what was altered elsewhere, too, is found %q", form)
		}
	}
	if _, ok := pack.Restored(nil, right); ok {
		t.Error("of nothing something is found")
	}
}

// FuzzUnpack: whatever is stored, reading it ends, within bounds; what is packed comes back.
func FuzzUnpack(f *testing.F) {
	for i, r := range records(f) {
		if i%50 == 0 && len(r) < 1<<12 {
			f.Add([]byte(r))
			f.Add(pack.Append(nil, r))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := pack.Unpack(nil, data); err == nil && len(got) > pack.Largest && data[0] != '[' {
			t.Fatalf("%d bytes became %d", len(data), len(got))
		}
		events := append([]byte{'['}, data...)
		if back, err := pack.Unpack(nil, pack.Append(nil, events)); err != nil || !bytes.Equal(back, events) {
			t.Fatalf("%q became %q: %v", events, back, err)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	var r []byte
	for _, is := range records(b) {
		if len(is) > 2200 && len(is) < 2400 {
			r = is
		}
	}
	packed := pack.Append(nil, r)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			packed = pack.Append(packed[:0], r)
		}
		b.ReportMetric(float64(len(packed))/float64(len(r)), "x-size")
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		into := make([]byte, 0, len(r)+64)
		for b.Loop() {
			if _, err := pack.Unpack(into, packed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
