package guard

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// A look is what one step contains, as the checks need it. It is scratch memory:
// looks are pooled, and nothing of one outlives the step it was taken of.
type look struct {
	text   text
	grams  []uint64
	output outputMark
	calls  []callMark
	hasher jsonHasher
	step   Step   // room for the one that is looked at
	words  []word // of the text that a pack reads
	word   []byte

	// Truncated is set if n-grams are only those of the output's two ends.
	truncated bool
}

// An outputMark stands for an output in the memory of a task.
type outputMark struct {
	hash    uint64
	context uint64   // what the task knew then
	grams   []uint64 // in mode any_ngram
	print   print    // in mode overlap
}

// A callMark stands for a tool call in the memory of a task.
type callMark struct {
	tool    int32  // index in memory.tools
	args    uint64 // what counts of the arguments
	result  uint64 // 0 if it is not known
	context uint64 // what the task knew then
	words   uint64 // sketch of the arguments, where near duplicates are looked for
}

var looks = sync.Pool{New: func() any { return new(look) }}

// release gives a look back. One that has grown large is left to the collector.
func (l *look) release() {
	l.step = Step{}
	if cap(l.text.lower) <= 1<<20 && cap(l.grams) <= 1<<17 && cap(l.words) <= 1<<16 && cap(l.word) <= 1<<16 {
		looks.Put(l)
	}
}

// ngramEnds is how much of each end of an output n-grams are made of in mode
// overlap, in bytes.
const ngramEnds = 32 << 10

// read reads a step. The error says what is wrong with its tool calls.
func (l *look) read(c *Config, s *Step, context uint64) error {
	l.truncated = false
	l.text.ascii, l.text.lower = false, l.text.lower[:0]
	l.output = outputMark{grams: l.output.grams[:0], print: l.output.print, context: context}
	l.readOutput(c, s)
	return l.readCalls(c, s, context)
}

func (l *look) readOutput(c *Config, s *Step) {
	if !s.HasOutput {
		return
	}
	grams := c.Loop.Mode != "off" && s.says()
	whole := c.Loop.Mode == "any_ngram" || len(s.Output) <= 2*ngramEnds
	if grams && whole || len(c.Forbidden) > 0 || c.Loop.MaxOutputRepeats != nil {
		l.text.read(s.Output, grams && whole)
		l.output.hash = l.text.hash
	}
	if !grams {
		return
	}
	n := int(c.Loop.NgramSize)
	if whole {
		l.grams = appendNgrams(l.grams[:0], l.text.tokens, n)
	} else {
		l.readEnds(s.Output, n)
	}
	if c.Loop.Mode == "any_ngram" {
		l.output.grams = append(l.output.grams, l.grams...)
	} else {
		l.output.print.take(l.grams)
	}
}

// readEnds makes n-grams of the two ends of a long output; none spans the gap.
func (l *look) readEnds(output string, n int) {
	ends := looks.Get().(*look)
	defer ends.release()
	l.truncated, l.grams = true, l.grams[:0]
	for _, part := range []string{output[:ngramEnds], output[len(output)-ngramEnds:]} {
		ends.text.read(part, true)
		l.grams = appendNgrams(l.grams, ends.text.tokens, n)
	}
}

func (l *look) readCalls(c *Config, s *Step, context uint64) error {
	l.calls = l.calls[:0]
	for i := range s.ToolCalls {
		call := &s.ToolCalls[i]
		mark := callMark{tool: -1, context: context}
		args, err := counted(c, call.Name, call.Args)
		if err != nil {
			return fmt.Errorf("tool call %d (%s): args: %w", i+1, call.Name, err)
		}
		if mark.args, err = l.hashArgs(args); err != nil {
			return fmt.Errorf("tool call %d (%s): args: %w", i+1, call.Name, err)
		}
		if len(call.Result) > 0 {
			if mark.result, err = l.hasher.hash(call.Result); err != nil {
				return fmt.Errorf("tool call %d (%s): result: %w", i+1, call.Name, err)
			}
		}
		if c.Loop.Near != nil {
			mark.words = sketch(args)
		}
		l.calls = append(l.calls, mark)
	}
	return nil
}

// hashArgs hashes arguments; none are null.
func (l *look) hashArgs(args []byte) (uint64, error) {
	if len(args) == 0 {
		return spread(seedNull), nil
	}
	return l.hasher.hash(args)
}

// runes counts the code points of the output.
func (l *look) runes(output string) int64 {
	if l.text.ascii && len(l.text.lower) == len(output) {
		return int64(len(output))
	}
	return int64(utf8.RuneCountInString(output))
}

// sketch returns 64 bits that stand for the set of words in data: of sixteen
// groups of words the lowest hash, in four bits, 15 where a group is empty (one
// permutation hashing, Li, Owen, Zhang 2012; b-bit minwise hashing, Li, König
// 2010). A word is a run of ASCII letters and digits, or of bytes beyond ASCII.
func sketch(data []byte) uint64 {
	var lowest [16]uint32
	for i := range lowest {
		lowest[i] = math.MaxUint32
	}
	start := -1 // of the word that is being read
	for base := 0; base < len(data); base += 64 {
		n := min(64, len(data)-base)
		inWord := wordBytes(data[base : base+n])
		if start < 0 && inWord&1 != 0 {
			start = base
		}
		// A set bit of edges is where a word begins or has just ended.
		edges := inWord ^ inWord<<1
		if start >= 0 && start < base {
			edges ^= 1 // it goes on from the block before, or has ended there
		}
		if start == base {
			edges &^= 1
		}
		for ; edges != 0; edges &= edges - 1 {
			at := base + bits.TrailingZeros64(edges)
			if at >= base+n {
				break
			}
			if start < 0 {
				start = at
				continue
			}
			note(&lowest, data, start, at)
			start = -1
		}
	}
	if start >= 0 {
		note(&lowest, data, start, len(data))
	}
	var out uint64
	for i, low := range lowest {
		nibble := uint64(15)
		if low != math.MaxUint32 {
			nibble = uint64(low) * prime1 >> 32 % 15
		}
		out |= nibble << (4 * i)
	}
	return out
}

// note counts one word.
func note(lowest *[16]uint32, data []byte, start, end int) {
	n := end - start
	var h uint64
	switch {
	case n > 8:
		h = hashBytes(data[start:end])
	case start+8 <= len(data):
		h = binary.LittleEndian.Uint64(data[start:]) << (64 - 8*uint(n))
	default: // at the end of the data
		for i := range n {
			h |= uint64(data[start+i]) << (64 - 8*uint(n-i))
		}
	}
	h = (h ^ uint64(n)) * prime1
	h ^= h >> 32
	lowest[h&15] = min(lowest[h&15], uint32(h>>4)&0x7fffffff)
}

// wordBytes returns a bit for each of at most 64 bytes that is part of a word.
func wordBytes(b []byte) (in uint64) {
	w := 0
	for ; w+8 <= len(b); w += 8 {
		x := binary.LittleEndian.Uint64(b[w:])
		lower := x | 0x2020202020202020
		digit := atLeast(x, '0') &^ atLeast(x, '9'+1)
		letter := atLeast(lower, 'a') &^ atLeast(lower, 'z'+1)
		in |= ((digit | letter | x) & high >> 7 * 0x0102040810204080 >> 56) << w
	}
	for ; w < len(b); w++ {
		if wordByte[b[w]] {
			in |= 1 << w
		}
	}
	return in
}

// atLeast sets the high bit of each byte of x, taken without its own high bit,
// that is at least c.
func atLeast(x uint64, c byte) uint64 { return (x&low7 + uint64(0x80-c)*0x0101010101010101) & high }

// similar reports whether two sketches are of sets whose Jaccard similarity is
// estimated as at least j.
func similar(a, b uint64, j exact.Billionths) bool {
	const low = 0x1111111111111111
	full := a & b // four set bits are an empty group
	empty := full & (full >> 1) & (full >> 2) & (full >> 3) & low
	differs := a ^ b
	differs = (differs | differs>>1 | differs>>2 | differs>>3) & low
	groups := 16 - bits.OnesCount64(empty)
	alike := groups - bits.OnesCount64(differs)
	return groups > 0 && int64(alike)*1e9 >= int64(groups)*int64(j)
}

var wordByte = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
	}
	return set
}()
