package batch

// CanonicalArgs is what the tests of the canonical form look at.
func (b *Loop) CanonicalArgs(tool string, args []byte) ([]byte, error) {
	return b.canonicalArgs(tool, args)
}
