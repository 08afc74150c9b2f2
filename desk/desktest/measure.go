package desktest

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Cold has the browser take nothing from its cache, as one that was never here.
func (p *Page) Cold() {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		p.Fatal(err)
	}
}

// Heap is how many bytes the scripts of the page hold, without what nobody holds any more.
func (p *Page) Heap() float64 {
	p.Helper()
	Eval[int](p, `globalThis.heard.length = 0`) // which is the test's
	if _, err := chromedp.Call(p.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		p.Fatal(err)
	}
	usage, err := chromedp.Call(p.ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		p.Fatal(err)
	}
	return usage.UsedSize
}
