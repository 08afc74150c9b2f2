//go:build !linux && !darwin

package serving

// roomAt knows nothing here.
func roomAt(string) (bytes uint64, known bool) { return 0, false }
