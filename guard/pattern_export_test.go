package guard

// Plain reports whether a forbidden pattern is a literal.
func (f *Forbidden) Plain() bool { return f.pattern.Plain }
