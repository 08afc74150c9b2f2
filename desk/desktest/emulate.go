package desktest

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// What a browser is told to be, and what becomes of what it asks for.

// Media has the system be as somebody has set it, by names and values of media features: what is not
// given is as it comes.
func (p *Page) Media(features ...string) {
	p.Helper()
	var all []*emulation.MediaFeature
	for i := 0; i+1 < len(features); i += 2 {
		all = append(all, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: all}); err != nil {
		p.Fatal(err)
	}
}

// Dark has the system be dark, or light.
func (p *Page) Dark(is bool) {
	p.Helper()
	p.Media("prefers-color-scheme", map[bool]string{true: "dark", false: "light"}[is])
}

// Touch has the browser be one that is touched.
func (p *Page) Touch() {
	p.Helper()
	p.touched = true
	if _, err := chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		p.Fatal(err)
	}
	p.Wait(`matchMedia("(pointer: coarse)").matches`)
}

// An answer is one that no server gives.
type answer struct {
	status int64
	body   string
}

// Stall has requests whose address matches a pattern wait, until [Page.Unstall].
func (p *Page) Stall(pattern string) {
	p.Helper()
	p.intercept(pattern, nil)
}

// Answer has requests whose address matches a pattern be answered so, until [Page.Unstall].
func (p *Page) Answer(pattern string, status int64, body string) {
	p.Helper()
	p.intercept(pattern, &answer{status, body})
}

func (p *Page) intercept(pattern string, a *answer) {
	p.Helper()
	p.mu.Lock()
	p.instead = a
	p.mu.Unlock()
	if _, err := chromedp.Call(p.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}}); err != nil {
		p.Fatal(err)
	}
}

// fulfil gives an answer to a request that has been stopped.
func (p *Page) fulfil(id fetch.RequestID, a *answer) {
	_, _ = chromedp.Call(p.ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: id, ResponseCode: a.status, // who asked may have gone
		ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "application/problem+json"}}, Body: []byte(a.body)})
}

// Unstall lets requests go on that wait, and stops none any more.
func (p *Page) Unstall() {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, fetch.Disable, cdp.Empty{}); err != nil {
		p.Fatal(err)
	}
}

// Show goes to a path within the page, as a link does.
func (p *Page) Show(path string) {
	p.Helper()
	Eval[bool](p, `(history.pushState(null, "", %s), dispatchEvent(new PopStateEvent("popstate")))`, path)
}
