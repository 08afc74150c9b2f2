//go:build linux || darwin

package serving

import (
	"path/filepath"
	"syscall"
)

// roomAt returns how many bytes are free where a file lies, as far as that is known.
func roomAt(path string) (bytes uint64, known bool) {
	var at syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &at) != nil {
		return 0, false
	}
	return at.Bavail * uint64(at.Bsize), true
}
