package projection

import (
	"crypto/sha256"
	"encoding/hex"
)

// Epoch returns the [session.HistoryStore] Epoch of a store with that secret.
func Epoch(secret []byte) string {
	sum := sha256.Sum256(append([]byte("dialai epoch\n"), secret...))
	return hex.EncodeToString(sum[:8])
}
