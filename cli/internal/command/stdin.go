package command

import (
	"context"
	"io"
	"os"

	"github.com/dialai/dialai/cli/internal/render"
)

// An input is the program's standard input. A read of a terminal or a pipe cannot be
// interrupted, so each waits beside the context: when that ends, the read returns
// [context.Canceled] at once, and what it was waiting for is left to the process,
// which ends soon. Whoever reads stdin reads it through one, so that no command can
// be deaf to Ctrl-C.
type input struct {
	ctx  context.Context //nolint:containedctx // it lives as long as the call
	from io.Reader
	got  chan read // of the read that is under way; nil if none is
	rest []byte    // of what was read, and not yet handed on
	err  error     // that came with it
}

// A StdinUse is something that stdin may be read for.
type StdinUse struct {
	What string
	Is   bool
}

// OneStdin refuses a command that would read stdin for two things.
func OneStdin(uses ...StdinUse) error {
	first := ""
	for _, use := range uses {
		switch {
		case !use.Is:
		case first == "":
			first = use.What
		default:
			return Hinted(Usage("stdin cannot be both %s and %s", first, use.What), "put one of them into a file and name it")
		}
	}
	return nil
}

// A read is what came of one.
type read struct {
	data []byte
	err  error
}

// readAhead is how much is read at once.
const readAhead = 64 << 10

// NewInput returns the standard input of a call.
func NewInput(ctx context.Context, from io.Reader) io.Reader { return &input{ctx: ctx, from: from} }

// Terminal returns the terminal that a standard input is, nil if it is none. What is read from it
// itself ends with the process only.
func Terminal(stdin io.Reader) *os.File {
	in, ok := stdin.(*input)
	if !ok {
		return nil
	}
	if file, ok := in.from.(*os.File); ok && render.IsTerminal(file) {
		return file
	}
	return nil
}

// Read reads as the reader beneath does, until the context ends.
func (in *input) Read(p []byte) (int, error) {
	if len(in.rest) == 0 && in.err == nil {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.rest)
	if in.rest = in.rest[n:]; len(in.rest) > 0 || n > 0 {
		return n, nil
	}
	err := in.err
	in.err = nil // a terminal may say more after its end
	return 0, err
}

// fill waits for the next bytes.
func (in *input) fill() error {
	if in.got == nil {
		got := make(chan read, 1)
		in.got = got
		go func() {
			b := make([]byte, readAhead)
			n, err := in.from.Read(b)
			got <- read{b[:n], err}
		}()
	}
	select {
	case <-in.ctx.Done():
		return context.Canceled
	case r := <-in.got:
		in.rest, in.err, in.got = r.data, r.err, nil
		return nil
	}
}
