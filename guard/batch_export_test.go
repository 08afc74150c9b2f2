package guard

import (
	"github.com/dialai/dialai/internal/text"
)

// CanonicalArgs is what the tests of the canonical form look at.
func (b *BatchLoop) CanonicalArgs(tool string, args []byte) ([]byte, error) {
	return b.canonicalArgs(tool, args)
}

// Unseen is what the test that compares it with names looks at.
func Unseen(r rune) bool { return text.Unseen(r) }
