package jsontext

// Skip passes over one JSON value and reports whether it was whole, and nothing
// followed.
func Skip(b []byte) bool {
	c := &Cursor{B: b}
	c.Raw()
	return c.Err == nil && c.Done()
}
