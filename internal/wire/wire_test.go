package wire_test

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"testing"

	"github.com/dialai/dialai/internal/wire"
)

// A thing has a member of each kind.
type thing struct {
	N      int64
	Small  int32
	F      float64
	Yes    bool
	Name   string
	List   []string
	Counts map[int32]int64
	Named  map[string]float64
	Maybe  *thing
	All    []*thing // shared
}

func (x *thing) code(c *wire.Coder) {
	wire.Int(c, &x.N)
	wire.Int(c, &x.Small)
	c.Float(&x.F)
	c.Bool(&x.Yes)
	wire.Text(c, &x.Name)
	wire.Slice(c, &x.List, func(s *string) { wire.Text(c, s) })
	wire.Map(c, &x.Counts, cmp.Compare[int32], func(k *int32, v *int64) {
		wire.Int(c, k)
		wire.Int(c, v)
	})
	wire.TextMap(c, &x.Named, c.Float)
	wire.Pointer(c, &x.Maybe, func(y *thing) { y.code(c) })
	wire.Slice(c, &x.All, func(p **thing) {
		wire.Shared(c, p, func(y *thing) { wire.Text(c, &y.Name) })
	})
}

func written(x *thing) []byte {
	c := wire.NewWriter()
	x.code(c)
	return c.Bytes()
}

func read(data []byte) (*thing, error) {
	var x thing
	c := wire.NewReader(data)
	x.code(c)
	return &x, c.Close()
}

func example() *thing {
	one, two := &thing{Name: "one"}, &thing{Name: "two"}
	return &thing{
		N: math.MinInt64, Small: -7, F: math.Copysign(0, -1), Yes: true, Name: "both",
		List: []string{"a", "", "both", "a"}, Counts: map[int32]int64{3: 1, -2: 5, 200: -1}, Named: map[string]float64{"b": 1.5, "a": math.Inf(1)},
		Maybe: &thing{Counts: map[int32]int64{}, Named: map[string]float64{}},
		All:   []*thing{one, two, one},
	}
}

// TestReadIsWritten: what is read is what was written, in the same bytes, and what was shared is.
func TestReadIsWritten(t *testing.T) {
	x := example()
	data := written(x)
	y, err := read(data)
	if err != nil || !reflect.DeepEqual(x, y) {
		t.Fatalf("read %+v (%v), want %+v", y, err, x)
	}
	if y.All[0] != y.All[2] || y.All[0] == y.All[1] {
		t.Error("what was one value is read as several")
	}
	if math.Float64bits(y.F) != math.Float64bits(x.F) {
		t.Error("a number has other bits")
	}
	for range 50 { // maps have another order each time
		if !bytes.Equal(written(example()), data) {
			t.Fatal("the same value has other bytes")
		}
	}
}

// TestReadingRefuses: what is cut or goes on is an error, and so is what is written in another way.
func TestReadingRefuses(t *testing.T) {
	data := written(example())
	for n := range data {
		if _, err := read(data[:n]); err == nil {
			t.Fatalf("the first %d bytes of %d can be read", n, len(data))
		}
	}
	if _, err := read(append(bytes.Clone(data), 0)); err == nil {
		t.Error("what goes on can be read")
	}
	for what, list := range map[string][]byte{
		"a number that takes more bytes than it needs": {0x80, 0},
		"a number that is too large":                   {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2},
	} {
		c := wire.NewReader(list)
		var n int64
		if wire.Int(c, &n); c.Close() == nil {
			t.Errorf("%s is read as %d", what, n)
		}
	}
	var small int32
	c := wire.NewWriter()
	wire.Int(c, new(int64(1)<<40))
	if r := wire.NewReader(c.Bytes()); func() error { wire.Int(r, &small); return r.Close() }() == nil {
		t.Errorf("a number of 41 bits is read as %d", small)
	}
}

// FuzzRead: whatever is read is written in the same bytes.
func FuzzRead(f *testing.F) {
	f.Add(written(example()))
	f.Add(written(&thing{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := read(data); err == nil && !bytes.Equal(written(x), data) {
			t.Errorf("%x is read, and written as %x", data, written(x))
		}
	})
}
