package trial

import (
	"sync"
	"sync/atomic"
)

// each calls f with every number below n, on some goroutines. Results go by
// number, so how many there are does not show.
func each(n, parallel int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, min(parallel, n)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
