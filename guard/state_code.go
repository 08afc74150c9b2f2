package guard

import (
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/wire"
)

// A State as bytes, for who keeps what a log was folded into. All is in it; of a ring only which items
// there are, the oldest first, for where it begins makes no difference.

// Code writes s, or fills it in. What is filled in shares nothing with others.
func (s *State) Code(c *wire.Coder) {
	for _, n := range []*int64{&s.Steps, &s.TokensIn, &s.TokensOut} {
		wire.Int(c, n)
	}
	wire.Int(c, &s.Money)
	codeBook(c, &s.Spent)
	codeBook(c, &s.Probes)
	c.Bool(&s.warned)
	wire.Text(c, &s.unpriced)
	wire.Pointer(c, &s.memory, func(m *memory) { m.code(c) })
}

func codeBook(c *wire.Coder, b *spend.Book) {
	for _, n := range []*int64{&b.Calls, &b.TokensIn, &b.TokensOut, &b.Unpriced, &b.Estimated} {
		wire.Int(c, n)
	}
	wire.Int(c, &b.Money)
}

func (m *memory) code(c *wire.Coder) {
	codeRing(c, &m.visits, func(v *visit) {
		wire.Bits(c, &v.State)
		wire.Bits(c, &v.Context)
	})
	codeRing(c, &m.prints, func(p *printMark) {
		wire.Bits(c, &p.context)
		wire.Slice(c, &p.Marks, func(n *uint32) { wire.Bits(c, n) })
		if c.Reading() {
			p.Index()
		}
	})
	codeRing(c, &m.grams, func(g *[]uint64) { wire.Slice(c, g, func(n *uint64) { wire.Bits(c, n) }) })
	codeRing(c, &m.calls, func(k *callMark) {
		wire.Int(c, &k.Tool)
		wire.Bits(c, &k.Context)
		wire.Bits(c, &k.Result)
		wire.Bits(c, &k.Words)
	})
	wire.Slice(c, &m.facts, func(f *fact) {
		wire.Text(c, &f.Transition)
		wire.Bits(c, &f.Hash)
	})
	wire.Slice(c, &m.tools, func(t *toolCount) {
		wire.Text(c, &t.Name)
		wire.Int(c, &t.Calls)
	})
	last := string(m.last)
	wire.Text(c, &last)
	wire.Bits(c, &m.output)
	wire.Bits(c, &m.context)
	wire.Int(c, &m.run)
	wire.Int(c, &m.streak)
	wire.Pointer(c, &m.batch, func(b *batch.State) {
		for _, list := range []*[]string{&b.Window, &b.Warned, &b.Blocked} {
			codeTexts(c, list)
		}
		wire.Pointer(c, &b.Pending, func(p *batch.Pending) {
			wire.Text(c, &p.Hash)
			wire.Text(c, &p.Message)
			wire.Int(c, &p.Count)
			codeTexts(c, &p.Tools)
		})
	})
	if !c.Reading() {
		return
	}
	if last != "" {
		m.last = []byte(last)
	}
	m.indexTools()
	for i := range m.calls.items {
		tool := m.calls.items[i].Tool
		c.Check(tool >= 0 && int(tool) < len(m.tools), "a call is of a tool that is not there")
	}
}

func codeTexts(c *wire.Coder, list *[]string) {
	wire.Slice(c, list, func(s *string) { wire.Text(c, s) })
}

func codeRing[T any](c *wire.Coder, r *ring[T], item func(*T)) {
	items := r.list()
	if wire.Slice(c, &items, item); c.Reading() {
		*r = ring[T]{items: items}
	}
}
