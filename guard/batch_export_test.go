package guard

// CanonicalArgs is what the tests of the canonical form look at.
func (b *BatchLoop) CanonicalArgs(tool string, args []byte) ([]byte, error) {
	return b.canonicalArgs(tool, args)
}
