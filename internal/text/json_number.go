package text

import "strconv"

// A number is a decimal: digits without zeros at either end, times ten to the
// power of exponent. Zero has no digits. The digits are valid until the next
// value is read.
type number struct {
	negative bool
	digits   []byte
	exponent int64
}

// number reads a number and hashes what it means.
func (h *JSONHasher) number() (uint64, error) {
	if h.only && h.plain() {
		return 0, nil
	}
	if err := h.readNumber(); err != nil {
		return 0, err
	}
	if len(h.last.digits) == 0 {
		return spread(seedNumber), nil
	}
	kind := seedNumber + uint64(h.last.exponent)*prime3
	if h.last.negative {
		kind += Prime2
	}
	return HashInto(spread(kind), h.last.digits), nil
}

// plain passes over a number that is nothing but digits, and reports whether it is
// one.
func (h *JSONHasher) plain() bool {
	at := h.at
	for at < len(h.data) && h.data[at]-'0' <= 9 {
		at++
	}
	if n := at - h.at; n == 0 || n > 1 && h.data[h.at] == '0' {
		return false
	}
	if at < len(h.data) && (h.data[at] == '.' || h.data[at]|0x20 == 'e') {
		return false
	}
	h.at = at
	return true
}

func (h *JSONHasher) readNumber() error {
	h.last = number{}
	if h.at < len(h.data) && h.data[h.at] == '-' {
		h.last.negative = true
		h.at++
	}
	h.buf = h.buf[:0]
	whole := h.digits()
	if whole == 0 || whole > 1 && h.buf[0] == '0' {
		return errSyntax
	}
	if h.at < len(h.data) && h.data[h.at] == '.' {
		h.at++
		n := h.digits()
		if n == 0 {
			return errSyntax
		}
		h.last.exponent = -int64(n)
	}
	e, err := h.exponent()
	if err != nil {
		return err
	}
	h.last.exponent += e
	digits := h.buf
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		h.last.exponent++
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	h.last.digits = digits
	return nil
}

// digits appends a run of digits to buf and returns its length.
func (h *JSONHasher) digits() int {
	start := h.at
	for h.at < len(h.data) && h.data[h.at] >= '0' && h.data[h.at] <= '9' {
		h.at++
	}
	h.buf = append(h.buf, h.data[start:h.at]...)
	return h.at - start
}

// maxExponent bounds exponents; nothing that anybody means is beyond it.
const maxExponent = 100_000

func (h *JSONHasher) exponent() (int64, error) {
	if h.at >= len(h.data) || h.data[h.at]|0x20 != 'e' {
		return 0, nil
	}
	h.at++
	start := h.at
	if h.at < len(h.data) && (h.data[h.at] == '+' || h.data[h.at] == '-') {
		h.at++
	}
	first := h.at
	for h.at < len(h.data) && h.data[h.at] >= '0' && h.data[h.at] <= '9' {
		h.at++
	}
	if h.at == first {
		return 0, errSyntax
	}
	e, err := strconv.ParseInt(string(h.data[start:h.at]), 10, 64)
	if err != nil || e > maxExponent || e < -maxExponent {
		return 0, errNumber
	}
	return e, nil
}
