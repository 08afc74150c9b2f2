package backtest

// Skip passes over one JSON value and reports whether it was whole, and nothing
// followed.
func Skip(b []byte) bool {
	c := &cursor{b: b}
	c.raw()
	return c.err == nil && c.next() == 0
}

// Decimal reads a number in billionths, as a log has it.
func Decimal(text string) (int64, bool) { return decimal([]byte(text), 9) }
