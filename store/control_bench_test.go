package store_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/store"
)

// BenchmarkControlRequest begins and ends a request with a receipt and two entries of the
// audit log, each commit on disk.
func BenchmarkControlRequest(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			c, err := store.OpenControl(b.Context(), filepath.Join(b.TempDir(), "control"), store.SQLiteOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			var n atomic.Int64
			b.SetParallelism(clients)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := fmt.Sprint(n.Add(1))
					r, e := aRequest(key)
					if _, err := c.Begin(b.Context(), r, e); err != nil {
						b.Error(err)
					}
					if err := c.Commit(b.Context(), answered(key)); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkControlKey reads a key, as each request does.
func BenchmarkControlKey(b *testing.B) {
	c, err := store.OpenControl(b.Context(), filepath.Join(b.TempDir(), "control"), store.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.Commit(b.Context(), control.Changes{Keys: []control.Key{{ID: "a", Grants: []control.Grant{{Role: control.Viewer, Machines: []string{"*"}}}}}}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Key(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}
