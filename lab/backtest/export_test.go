package backtest

// Skip passes over one JSON value and reports whether it was whole, and nothing
// followed.
func Skip(b []byte) bool {
	c := &cursor{b: b}
	c.raw()
	return c.err == nil && c.next() == 0
}
