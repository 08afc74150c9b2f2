package bridge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// longestLine is how long a command may be, in bytes.
const longestLine = 16 << 20

// read reads commands until there are no more.
func (b *bridge) read(in io.Reader) {
	lines(in, func(line []byte, long bool) {
		var c command
		if long {
			c.fault = &fault{lineTooLong, "a line has more than 16 MiB; it was skipped"}
		} else {
			c = parse(line)
		}
		b.post(func() { b.take(c) })
	})
	b.post(b.end)
}

// lines calls f with each line that is not empty, also the last one that has no end. One that
// is too long is skipped, and f is told that.
func lines(in io.Reader, f func(line []byte, long bool)) {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(bytes.TrimRight(part, "\r\n")) > longestLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); long || len(line) > 0 {
			f(line, long)
		}
		if err != nil {
			return
		}
		line, long = nil, false
	}
}
