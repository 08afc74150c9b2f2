package guardlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxStep bounds the JSON of one step.
const MaxStep = 32 << 20

// EachLine calls f with every line that is not blank and its number from 1, as
// they come. A line that is too long has none of its bytes, and the error
// errLongLine. What cannot be read, and an error of f, end it.
func EachLine(r io.Reader, f func(n int, line []byte, err error) error) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		long, end := errors.Is(err, errLongLine), errors.Is(err, io.EOF)
		if end {
			err = nil
		}
		if long || err == nil && len(bytes.TrimSpace(line)) > 0 {
			err = f(n, line, err)
		}
		if end || err != nil {
			return err
		}
	}
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes", MaxStep)

// readLine reads a line of any length; the rest of one that is too long is
// skipped.
func readLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxStep; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return nil, errLongLine
		}
		return line, err
	}
}
