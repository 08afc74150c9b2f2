package trial

import (
	"sync"
	"sync/atomic"
)

// each is each of o, and tells Progress how much of what is done.
func (o *Options) each(what string, n int, f func(i int)) {
	if o.Progress == nil {
		each(n, o.Parallel, f)
		return
	}
	var done atomic.Int64
	each(n, o.Parallel, func(i int) {
		f(i)
		o.Progress(what, int(done.Add(1)), n, o.follow)
	})
}

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
