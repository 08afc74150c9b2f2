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
	output outputMark
	counts gramCounter // in mode any_ngram
	calls  []callMark
	hasher jsonHasher
	padded []byte // the arguments of a call and zeros behind them
	step   Step   // room for the one that is looked at
	words  []word // of the text that a pack reads
	word   []byte

	// Truncated is set if n-grams are only those of the output's two ends.
	truncated bool
}

// An outputMark is what loop detection needs of an output.
type outputMark struct {
	hash    uint64
	context uint64   // what the task knew then
	grams   []uint64 // unless the mode is off
	print   print    // in mode overlap
}

// A printMark stands for an output in the memory of a task.
type printMark struct {
	context uint64 // what the task knew then
	print
}

// A callMark stands for a tool call in the memory of a task.
type callMark struct {
	tool    int32  // index in memory.tools
	context uint32 // the lower half of what the task knew then
	result  uint64 // 0 if it is not known
	words   uint64 // sketch of the arguments, where near duplicates are looked for
}

var looks = sync.Pool{New: func() any { return new(look) }}

// release gives a look back. One that has grown large is left to the collector.
func (l *look) release() {
	l.step = Step{}
	if cap(l.text.lower) <= 1<<20 && cap(l.output.grams) <= 1<<15 && cap(l.words) <= 1<<16 && cap(l.word) <= 1<<16 {
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
		l.output.grams = appendNgrams(l.output.grams, l.text.tokens, n)
	} else {
		l.readEnds(s.Output, n)
	}
	if c.Loop.Mode == "overlap" {
		l.output.print.take(l.output.grams)
	}
}

// readEnds makes n-grams of the two ends of a long output; none spans the gap.
func (l *look) readEnds(output string, n int) {
	ends := looks.Get().(*look)
	defer ends.release()
	l.truncated = true
	for _, part := range []string{output[:ngramEnds], output[len(output)-ngramEnds:]} {
		ends.text.read(part, true)
		l.output.grams = appendNgrams(l.output.grams, ends.text.tokens, n)
	}
}

func (l *look) readCalls(c *Config, s *Step, context uint64) error {
	l.calls = l.calls[:0]
	for i := range s.ToolCalls {
		call := &s.ToolCalls[i]
		mark := callMark{tool: -1, context: uint32(context)}
		args, err := counted(c, call.Name, call.Args)
		if err != nil {
			return fmt.Errorf("tool call %d (%s): args: %w", i+1, call.Name, err)
		}
		if err := l.checkArgs(args); err != nil {
			return fmt.Errorf("tool call %d (%s): args: %w", i+1, call.Name, err)
		}
		if len(call.Result) > 0 {
			if mark.result, err = l.hasher.hash(call.Result); err != nil {
				return fmt.Errorf("tool call %d (%s): result: %w", i+1, call.Name, err)
			}
		}
		if c.Loop.Near != nil {
			l.padded = append(append(l.padded[:0], args...), zeros[:]...)
			mark.words = sketch(l.padded, len(args))
		}
		l.calls = append(l.calls, mark)
	}
	return nil
}

// checkArgs checks arguments; none are null.
func (l *look) checkArgs(args []byte) error {
	if len(args) == 0 {
		return nil
	}
	return l.hasher.check(args)
}

// hashArgs hashes arguments that were checked.
func (l *look) hashArgs(args []byte) uint64 {
	if len(args) == 0 {
		return spread(seedNull)
	}
	h, _ := l.hasher.hash(args)
	return h
}

// runes counts the code points of the output.
func (l *look) runes(output string) int64 {
	if l.text.ascii && len(l.text.lower) == len(output) {
		return int64(len(output))
	}
	return int64(utf8.RuneCountInString(output))
}

// zeros are put behind what is read 64 bytes at a time.
var zeros [padding]byte

// sketch returns 64 bits that stand for the set of words in padded[:n]: of sixteen
// groups of words the lowest hash, in four bits, 15 where a group is empty (one
// permutation hashing, Li, Owen, Zhang 2012; b-bit minwise hashing, Li, König
// 2010). A word is a run of ASCII letters and digits, or of bytes beyond ASCII.
// Behind padded[:n] come zeros.
func sketch(padded []byte, n int) uint64 {
	var g groups
	g.clear()
	start, inWord := 0, uint64(0) // 1 if a word goes on from the block before
	for base := 0; base <= n; base += 64 {
		in := wordsIn((*[64]byte)(padded[base:]))
		before := in<<1 | inWord
		starts, ends := in&^before, before&^in
		for ; ends != 0; ends &= ends - 1 {
			if inWord == 0 {
				start = base + bits.TrailingZeros64(starts)
				starts &= starts - 1
			}
			inWord = 0
			g.note(padded, start, base+bits.TrailingZeros64(ends))
		}
		if inWord = in >> 63; starts != 0 {
			start = base + bits.TrailingZeros64(starts)
		}
	}
	return g.bits()
}

// groups are the lowest hashes of sixteen groups of words.
type groups [16]uint32

func (g *groups) clear() {
	for i := range g {
		g[i] = math.MaxUint32
	}
}

// note counts the word padded[start:end].
func (g *groups) note(padded []byte, start, end int) {
	n := uint(end - start)
	var h uint64
	if n > 8 {
		h = hashBytes(padded[start:end])
	} else {
		h = binary.LittleEndian.Uint64(padded[start:]) << ((64 - 8*n) & 63)
	}
	h = (h ^ uint64(n)) * prime1
	h ^= h >> 32
	g[h&15] = min(g[h&15], uint32(h>>4)&0x7fffffff)
}

// bits returns four bits for each group.
func (g *groups) bits() (all uint64) {
	for i, low := range g {
		nibble := uint64(15)
		if low != math.MaxUint32 {
			nibble = uint64(low*uint32(prime2>>32)) * 15 >> 32
		}
		all |= nibble << (4 * i)
	}
	return all
}

// wordsIn returns a bit for each of 64 bytes that is part of a word.
func wordsIn(b *[64]byte) uint64 {
	return wordsInHalf((*[32]byte)(b[:32])) | wordsInHalf((*[32]byte)(b[32:]))<<32
}

func wordsInHalf(b *[32]byte) uint64 {
	return packed(wordBytes(binary.LittleEndian.Uint64(b[0:]))) | packed(wordBytes(binary.LittleEndian.Uint64(b[8:])))<<8 |
		packed(wordBytes(binary.LittleEndian.Uint64(b[16:])))<<16 | packed(wordBytes(binary.LittleEndian.Uint64(b[24:])))<<24
}

// wordBytes sets the high bit of each byte that is part of a word. Digits have the
// bit that makes a letter small, so both are looked for in lower case; the control
// characters that become digits so do not occur in JSON.
func wordBytes(x uint64) uint64 {
	low := (x | ' '*ones) & low7
	digit := (low + (0x80-'0')*ones) ^ (low + (0x7f-'9')*ones)
	letter := (low + (0x80-'a')*ones) ^ (low + (0x7f-'z')*ones)
	return (digit | letter | x) & high
}

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

// wordByte says which bytes words are made of.
var wordByte = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
	}
	return set
}()
