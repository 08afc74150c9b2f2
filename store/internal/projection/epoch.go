package projection

import (
	"crypto/sha256"
	"encoding/hex"
)

// Epoch returns the [session.HistoryStore] Epoch of a store with that secret, or of what it was given in place of it: a
// database has a uuid, which its copies keep as it is.
func Epoch(from []byte) string {
	if len(from) == len("00000000-0000-0000-0000-000000000000") {
		return string(from)
	}
	sum := sha256.Sum256(append([]byte("dialai epoch\n"), from...))
	return hex.EncodeToString(sum[:8])
}
