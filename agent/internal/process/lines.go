package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// longestLine is how long a line of a program may be.
const longestLine = 64 << 20

// ErrLineTooLong says that a program printed a longer line than any is.
var ErrLineTooLong = fmt.Errorf("a line of the agent is longer than %d MiB", longestLine>>20)

// Lines calls each with every line of r, without its end, until r ends. A line is only lent.
// What is held is the line and some room beside it; the room for a giant one is given back.
func Lines(r io.Reader, each func(line []byte)) error {
	lines := lineReader{r: r, most: longestLine}
	for {
		line, err := lines.next()
		if len(line) > 0 {
			each(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A lineReader splits what it reads into lines. The zero value but for r and most is ready.
type lineReader struct {
	r    io.Reader
	most int
	cut  bool // longer lines are cut off, else they are an error

	buf        []byte
	start, end int  // of what was read and not returned
	seen       int  // how much of that has no end of a line
	skip       bool // the rest of the line is left out
}

// room is how much is read at once, and giant the room beyond which it is given back.
const (
	room  = 64 << 10
	giant = 1 << 20
)

// next returns the next line; at the end of r also one that has no end, with [io.EOF].
func (l *lineReader) next() (line []byte, err error) {
	for {
		if i := bytes.IndexByte(l.buf[l.start+l.seen:l.end], '\n'); i >= 0 {
			line = l.buf[l.start : l.start+l.seen+i]
			l.start += l.seen + i + 1
			l.seen = 0
			if l.skip {
				l.skip = false
				continue
			}
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if l.seen = l.end - l.start; l.seen > l.most {
			if !l.cut {
				return nil, ErrLineTooLong
			}
			line = l.buf[l.start : l.start+l.most]
			l.start, l.seen = l.end, 0
			if !l.skip {
				l.skip = true
				return line, nil
			}
		}
		if err := l.fill(); err != nil {
			line = l.buf[l.start:l.end]
			l.start, l.seen = l.end, 0
			if l.skip {
				line = nil
			}
			return line, err
		}
	}
}

// fill reads more, behind what is there.
func (l *lineReader) fill() error {
	switch have := l.end - l.start; {
	case have == 0 && cap(l.buf) > giant, l.buf == nil:
		l.buf, l.start, l.end = make([]byte, room), 0, 0
	case l.start > 0:
		copy(l.buf, l.buf[l.start:l.end])
		l.start, l.end = 0, have
	}
	if l.end == len(l.buf) {
		more := make([]byte, min(2*len(l.buf), l.most+2*room))
		copy(more, l.buf[:l.end])
		l.buf = more
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	if n > 0 {
		return nil
	}
	return err
}

// MostTold is how many bytes of what a program says an event tells, where it need not be whole.
const MostTold = 2 << 10

// Beginning returns as much of a text as an event tells.
func Beginning(text string) string {
	if len(text) > MostTold {
		text = text[:MostTold]
	}
	return strings.ToValidUTF8(text, "")
}
