package guard

import (
	"fmt"
	"math"
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
	words   uint64 // SimHash of the arguments, where near duplicates are looked for
}

var looks = sync.Pool{New: func() any { return new(look) }}

// release gives a look back. One that has grown large is left to the collector.
func (l *look) release() {
	if cap(l.text.lower) <= 1<<20 && cap(l.grams) <= 1<<17 {
		looks.Put(l)
	}
}

// ngramEnds is how much of each end of an output n-grams are made of in mode
// overlap, in bytes.
const ngramEnds = 32 << 10

// read reads a step. The error says what is wrong with its tool calls.
func (l *look) read(c *Config, s *Step, context uint64) error {
	l.truncated = false
	l.output = outputMark{grams: l.output.grams[:0], print: l.output.print, context: context}
	l.readOutput(c, s)
	return l.readCalls(c, s, context)
}

func (l *look) readOutput(c *Config, s *Step) {
	if !s.HasOutput {
		return
	}
	grams := c.Loop.Mode != "off" && !s.Canned && !s.Human
	whole := c.Loop.Mode == "any_ngram" || len(s.Output) <= 2*ngramEnds
	if grams && whole || len(c.Forbidden) > 0 {
		l.text.read(s.Output, grams && whole)
	}
	if c.Loop.MaxOutputRepeats != nil {
		l.output.hash = hashText(s.Output)
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
			mark.words = simHash(args)
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

// hashText hashes an output as it is.
func hashText(s string) uint64 { return hashBytes(bytesOf(s)) }

// runes counts code points.
func runes(s string) int64 { return int64(utf8.RuneCountInString(s)) }

// simHash returns 64 bits that differ in few places for arguments that differ in
// few words (Charikar 2002). A word is a run of ASCII letters and digits, or of
// bytes beyond ASCII.
func simHash(data []byte) uint64 {
	var lanes [8]uint64 // for each bit of a hash, in how many words it is set; eight counters a lane
	var sums [64]int32
	n, batch, start := 0, 0, -1
	for i := 0; i <= len(data); i++ {
		if i < len(data) && wordByte[data[i]] {
			if start < 0 {
				start = i
			}
			continue
		}
		if start < 0 {
			continue
		}
		h := hashBytes(data[start:i])
		start = -1
		for k := range lanes {
			lanes[k] += h >> k & 0x0101010101010101
		}
		if n, batch = n+1, batch+1; batch == 255 {
			drain(&lanes, &sums)
			batch = 0
		}
	}
	drain(&lanes, &sums)
	var out uint64
	for i, s := range sums {
		if int(s)*2 > n {
			out |= 1 << i
		}
	}
	return out
}

// drain adds the lanes to the sums and empties them.
func drain(lanes *[8]uint64, sums *[64]int32) {
	for k := range lanes {
		for b := range 8 {
			sums[b*8+k] += int32(lanes[k] >> (8 * b) & 0xff)
		}
		lanes[k] = 0
	}
}

var wordByte = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
	}
	return set
}()

// distance returns how many bits of the SimHashes of two sets of words of like
// size differ, on average, if their Jaccard similarity is j: the share of the
// angle between them, whose cosine is 2j/(1+j).
func distance(j exact.Billionths) int {
	f := j.Float()
	return int(64 * math.Acos(2*f/(1+f)) / math.Pi)
}
