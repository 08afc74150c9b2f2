package guard

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// What one step contains, read once for all checks: the text in lower case with the
// hash of the output, its n-grams or fingerprint, the arguments of its tool calls,
// checked. Reading is scratch work, so looks are pooled, and nothing of one may be kept
// after the step; what is remembered is copied from it (memory.add).
//
// Only what the section needs is read. Of an output longer than twice 32 KiB, in mode
// overlap, n-grams are made of the two ends alone, and the look says so. Where the
// section normalises, characters that nobody sees are left out before the output is
// compared.

// A look is what one step contains, as the checks need it. It is scratch memory:
// looks are pooled, and nothing of one outlives the step it was taken of.
type look struct {
	text   text.Text
	output outputMark
	counts text.GramCounter // in mode any_ngram
	calls  []callMark
	tools  []string // of the calls, by the names under which they are counted
	hasher text.JSONHasher
	padded []byte       // the arguments of a call and zeros behind them
	state  hash         // of the state's name
	step   verdict.Step // room for the one that is looked at
	before State        // room for what it is judged by
	packs  packs.Scratch
	seen   []byte // the output without what nobody sees

	// truncated is set if n-grams are only those of the output's two ends.
	truncated bool
}

// An outputMark is what loop detection needs of an output.
type outputMark struct {
	hash    hash
	context hash       // what the task knew then
	grams   []uint64   // in mode any_ngram
	print   text.Print // in mode overlap
}

// A printMark stands for an output in the memory of a task.
type printMark struct {
	context hash // what the task knew then
	text.Print
}

// A callMark stands for a tool call in the memory of a task.
type callMark struct {
	Tool    int32  `json:"tool"`              // index in memory.tools
	Context uint32 `json:"context,omitempty"` // the lower half of what the task knew then
	Result  hash   `json:"result,omitempty"`  // 0 if it is not known
	Words   hash   `json:"words,omitempty"`   // sketch of the arguments, where near duplicates are looked for
}

var looks = sync.Pool{New: func() any { return new(look) }}

// release gives a look back. One that has grown large is left to the collector.
func (l *look) release() {
	l.step, l.before = verdict.Step{}, State{}
	clear(l.tools)
	bytes, words := l.packs.Size()
	bytes += cap(l.text.Lower) + cap(l.padded) + cap(l.seen)
	items := words + cap(l.output.grams) + cap(l.counts.Slots)
	if bytes <= 1<<20 && items <= 1<<17 {
		looks.Put(l)
	}
}

// ngramEnds is how much of each end of an output n-grams are made of in mode
// overlap, in bytes.
const ngramEnds = 32 << 10

// read reads a step. The error says what is wrong with its tool calls.
func (l *look) read(c *Config, s *verdict.Step, context hash) error {
	l.truncated, l.state = false, hash(text.HashBytes(text.BytesOf(s.State)))
	l.text.ASCII, l.text.Lower = false, l.text.Lower[:0]
	l.output = outputMark{grams: l.output.grams[:0], print: l.output.print, context: context}
	l.readOutput(c, s)
	return l.readCalls(c, s, context)
}

func (l *look) readOutput(c *Config, s *verdict.Step) {
	if !s.HasOutput {
		return
	}
	l.readPlain(c, s)
	if c.Loop.Normalize && says(s) && !l.text.ASCII && text.FirstUnseen(text.BytesOf(s.Output)) >= 0 {
		l.readSeen(c, s)
	}
}

// says reports whether the output of a step is one that could repeat others.
func says(s *verdict.Step) bool { return s.HasOutput && s.Output != "" && !s.Canned && !s.Human }

func (l *look) readPlain(c *Config, s *verdict.Step) {
	grams := c.Loop.Mode != "off" && says(s)
	whole := c.Loop.Mode == "any_ngram" || len(s.Output) <= 2*ngramEnds
	if grams && whole || len(c.Forbidden) > 0 || c.Loop.MaxOutputRepeats != nil {
		l.text.Read(s.Output, grams && whole)
		l.output.hash = hash(l.text.Hash)
	}
	if !grams {
		return
	}
	l.output.print.Begin()
	if whole {
		l.readGrams(c, l.text.Tokens)
	} else {
		l.readEnds(c, s.Output)
	}
	if c.Loop.Mode == "overlap" {
		l.output.print.End()
	}
}

// readGrams reads the n-grams of an output, or of a part of it.
func (l *look) readGrams(c *Config, tokens []uint64) {
	n := int(c.Loop.NgramSize)
	if c.Loop.Mode == "overlap" {
		l.output.print.Add(tokens, n)
	} else {
		l.output.grams = text.AppendNgrams(l.output.grams, tokens, n)
	}
}

// readEnds reads the n-grams of the two ends of a long output; none spans the gap.
func (l *look) readEnds(c *Config, output string) {
	ends := looks.Get().(*look)
	defer ends.release()
	l.truncated = true
	for _, part := range []string{output[:ngramEnds], output[len(output)-ngramEnds:]} {
		ends.text.Read(part, true)
		l.readGrams(c, ends.text.Tokens)
	}
}

func (l *look) readCalls(c *Config, s *verdict.Step, context hash) error {
	l.calls, l.tools = l.calls[:0], l.tools[:0]
	for i := range s.ToolCalls {
		call := &s.ToolCalls[i]
		l.tools = append(l.tools, c.toolOf(call.Name))
		mark := callMark{Tool: -1, Context: uint32(context)}
		args, err := counted(c, call.Name, call.Args)
		if err == nil && len(args) > 0 { // none are null
			err = l.hasher.Check(args)
		}
		if err != nil {
			return fmt.Errorf("tool call %d (%s): args: %w", i+1, call.Name, err)
		}
		if len(call.Result) > 0 {
			h, err := l.hasher.HashResult(call.Result, c.Loop.Normalize)
			if err != nil {
				return fmt.Errorf("tool call %d (%s): result: %w", i+1, call.Name, err)
			}
			mark.Result = hash(h)
		}
		if c.Loop.Near != nil {
			l.padded = append(append(l.padded[:0], args...), text.Zeros[:]...)
			mark.Words = hash(text.Sketch(l.padded, len(args)))
		}
		l.calls = append(l.calls, mark)
	}
	return nil
}

// hashArgs hashes arguments that were checked, if normal is set without what disguises
// a loop.
func (l *look) hashArgs(args []byte, normal bool) (h uint64) {
	switch {
	case len(args) == 0:
		h = text.HashNull()
	case normal:
		h, _ = l.hasher.HashNormal(args)
	default:
		h, _ = l.hasher.Hash(args)
	}
	return h
}

// runes counts the code points of the output.
func (l *look) runes(output string) int64 {
	if l.text.ASCII && len(l.text.Lower) == len(output) {
		return int64(len(output))
	}
	return int64(utf8.RuneCountInString(output))
}
