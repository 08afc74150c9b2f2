package desktest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a page may take to come to what is waited for.
const patience = time.Minute

// A Page is a tab that shows the desk to somebody. At its end the test fails for each thing that the
// browser complained of: errors and exceptions of scripts, reports of the policy, dialogs, requests to
// elsewhere, and answers of 400 and above that [Page.Expect] does not name.
type Page struct {
	testing.TB
	server *Server
	ctx    context.Context

	touched bool // instead of pointed at

	mu       sync.Mutex
	problems []string
	expected []string
	instead  *answer // to requests that are stopped; nil if they wait
	bodies   map[network.RequestID]*body
	reading  int       // bodies; not a WaitGroup, since more may begin while somebody waits
	read     sync.Cond // of mu: reading has become 0
}

// A body is an answer to a page.
type body struct{ url, text string }

// watching is what a page is given before its own scripts: what its worker tells it is kept.
const watching = `(() => {
	globalThis.heard = [];
	const Real = globalThis.SharedWorker;
	globalThis.SharedWorker = class extends Real {
		constructor(...given) {
			super(...given);
			this.port.addEventListener("message", (m) => globalThis.heard.push(JSON.stringify(m.data)));
		}
	};
})()`

// Open opens a tab of a browser of its own, in which somebody has signed in with a ticket ("" has
// not), at a path below /desk/.
func Open(s *Server, who, path string) *Page {
	s.Helper()
	return s.open(one.begin(s.TB), who, path, "", chromedp.WithNewBrowserContext())
}

// OpenIn is [Open] in a browser that is another one: a script changes it before the page's own run.
func OpenIn(s *Server, who, path, script string) *Page {
	s.Helper()
	return s.open(one.begin(s.TB), who, path, script, chromedp.WithNewBrowserContext())
}

// Tab opens another tab of the same browser.
func (p *Page) Tab(path string) *Page {
	p.Helper()
	return p.TabIn(path, "")
}

// TabIn is [Page.Tab] with a script as that of [OpenIn].
func (p *Page) TabIn(path, script string) *Page {
	p.Helper()
	return p.server.open(p.ctx, "", path, script)
}

func (s *Server) open(in context.Context, who, path, script string, options ...chromedp.ContextOption) *Page {
	s.Helper()
	ctx, end := chromedp.NewContext(in, options...)
	p := &Page{TB: s.TB, server: s, ctx: ctx, bodies: map[network.RequestID]*body{}}
	p.read.L = &p.mu
	s.Cleanup(func() {
		p.readAll()
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			p.Errorf("the browser complains: %s", problem)
		}
	})
	must := func(err error) {
		p.Helper()
		if err != nil {
			p.Fatal(err)
		}
	}
	must(chromedp.Do(ctx))
	must(chromedp.Listen(ctx, p.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(err)
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	must(err)
	_, err = chromedp.Call(ctx, audits.Enable, cdp.Empty{})
	must(err)
	_, err = chromedp.Call(ctx, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: watching + ";" + script})
	must(err)
	p.Size(1280, 900)
	if who == "" {
		p.Expect("401 /v1")
	} else {
		path += "#t=" + s.Ticket(who)
	}
	p.Visit(path)
	return p
}

// Ticket makes a ticket with which somebody signs in, once.
func (s *Server) Ticket(who string) string {
	s.Helper()
	var made struct{ Ticket string }
	s.Call(who, 201, "POST", "/v1/tickets", `{"for":"desk"}`, &made)
	return made.Ticket
}

func (p *Page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	complain := func(format string, args ...any) { p.problems = append(p.problems, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		complain("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var said []string
			for _, a := range e.Args {
				said = append(said, string(a.Value)+a.Description)
			}
			complain("console: %s", strings.Join(said, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			complain("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if text, _ := json.Marshal(e.Issue); e.Issue.Code == "ContentSecurityPolicyIssue" {
			complain("policy: %s", text)
		}
	case *cdpage.EventJavascriptDialogOpening:
		complain("dialog: %s", e.Message)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.server.URL+"/") && !strings.HasPrefix(e.Request.URL, "data:") { // pictures of the browser's own
			complain("request to elsewhere: %s", e.Request.URL)
		}
	case *network.EventResponseReceived:
		p.bodies[e.RequestID] = &body{url: e.Response.URL}
		if said := fmt.Sprintf("%d %s", e.Response.Status, strings.TrimPrefix(e.Response.URL, p.server.URL)); e.Response.Status >= 400 && !p.isExpected(said) {
			complain("answer: %s", said)
		}
	case *fetch.EventRequestPaused:
		if p.instead != nil {
			go p.fulfil(e.RequestID, p.instead)
		}
	case *network.EventLoadingFinished:
		if at := p.bodies[e.RequestID]; at != nil {
			p.reading++
			go func() {
				got, err := chromedp.Call(p.ctx, network.GetResponseBody, network.GetResponseBodyParams{RequestID: e.RequestID})
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil {
					at.text = string(got.Body)
				}
				if p.reading--; p.reading == 0 {
					p.read.Broadcast()
				}
			}()
		}
	}
}

// readAll waits until all bodies are read.
func (p *Page) readAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.reading > 0 {
		p.read.Wait()
	}
}

func (p *Page) isExpected(said string) bool {
	for _, prefix := range p.expected {
		if strings.HasPrefix(said, prefix) {
			return true
		}
	}
	return false
}

// Expect says which answers of 400 and above are part of the test: how they begin, as "409 /v1/inbox/".
func (p *Page) Expect(answers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, answers...)
}

// Heard is all that the page has been told since it was opened: answers of the API, and what its
// worker has passed on.
func (p *Page) Heard() string {
	p.Helper()
	p.readAll()
	worker := Eval[string](p, `JSON.stringify(globalThis.heard)`)
	p.mu.Lock()
	defer p.mu.Unlock()
	var all strings.Builder
	for _, b := range p.bodies {
		if !strings.Contains(b.url, "/desk/assets/") {
			all.WriteString(b.url + "\n" + b.text + "\n")
		}
	}
	return all.String() + worker
}

// Visit shows a path, as of an address that somebody has typed, and waits until it has loaded.
func (p *Page) Visit(path string) {
	p.Helper()
	p.Go(path)
	p.Settled()
}

// Go is [Page.Visit] of what may be no page of the desk.
func (p *Page) Go(path string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience) // it may wait for a connection
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.server.URL+path)); err != nil {
		p.Fatalf("%s: %v", path, err)
	}
}

// Settled waits until the page is not busy.
func (p *Page) Settled() {
	p.Helper()
	p.Wait(`document.querySelector("main")?.getAttribute("aria-busy") === "false" && !document.querySelector("[data-state=loading]")`)
}

// Size sets how large the window is.
func (p *Page) Size(width, height int64) {
	p.Helper()
	err := chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height))
	if err == nil && p.touched { // it is not any more, by that
		_, err = chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	}
	if err != nil {
		p.Fatal(err)
	}
}

// Lose kills the server, and waits until the page says so.
func (p *Page) Lose() {
	p.Helper()
	p.server.Kill()
	p.Wait(`/^offline since/.test(document.querySelector("header .state").innerText)`)
}

// Find starts the server again, and waits until the page says so.
func (p *Page) Find() {
	p.Helper()
	p.server.Restart()
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
}

// Narrow fails the test if the page needs scrolling sideways, or if something runs out of its place
// and over what stands beside it.
func (p *Page) Narrow(name string) {
	p.Helper()
	if wide := Eval[string](p, `document.documentElement.scrollWidth <= innerWidth ? "" : innerWidth + " px: " + [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(-3).map((e) => e.outerHTML.slice(0, 200)).join("\n")`); wide != "" {
		p.Errorf("%s scrolls sideways at %s", name, wide)
	}
	if over := Eval[string](p, `[...document.querySelectorAll("dt, dd, th, td, li, p, h1, h2, h3, label, legend, button")].filter((e) => e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "visible").map((e) => e.outerHTML.slice(0, 200)).join("\n")`); over != "" {
		p.Errorf("%s has what runs out of its place: %s", name, over)
	}
}

// Set sets what the browser keeps, such as {"hold":0}, and shows the page anew.
func (p *Page) Set(settings string) {
	p.Helper()
	Eval[bool](p, `(localStorage.setItem("dialai.settings", %s), true)`, settings)
	p.Visit(p.Path())
}

// Eval is what a script comes to in a page, once it is known.
func Eval[T any](p *Page, script string, args ...any) T {
	p.Helper()
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			p.Fatal(err)
		}
		args[i] = string(text)
	}
	if len(args) > 0 {
		script = fmt.Sprintf(script, args...)
	}
	v, err := evaluate[T](p, script)
	if err != nil {
		p.Fatalf("%s: %v", script, err)
	}
	return v
}

func evaluate[T any](p *Page, script string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, 2*patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Wait waits until an expression holds in the page, which may be loaded anew meanwhile.
func (p *Page) Wait(expression string, args ...any) {
	p.Helper()
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			p.Fatal(err)
		}
		args[i] = string(text)
	}
	if len(args) > 0 {
		expression = fmt.Sprintf(expression, args...)
	}
	script := fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + %d;
		const look = () => {
			try { if (%s) return done(""); } catch { /* not yet */ }
			if (performance.now() > end) return done(location.href + "\n" + document.body.innerText);
			setTimeout(look, 15);
		};
		look();
	})`, patience.Milliseconds(), expression)
	saw, err := evaluate[string](p, script)
	for err != nil && strings.Contains(err.Error(), "navigated") && p.ctx.Err() == nil {
		saw, err = evaluate[string](p, script)
	}
	if err != nil {
		p.Fatalf("%s: %v", script, err)
	}
	if saw != "" {
		p.shot("failed")
		p.Fatalf("it does not come to %s, at\n%s", expression, saw)
	}
}

// Says waits until the page has a text.
func (p *Page) Says(text string) {
	p.Helper()
	p.Wait(`document.body.innerText.includes(%s)`, text)
}

// Text is what somebody reads there.
func (p *Page) Text() string {
	p.Helper()
	return Eval[string](p, `document.body.innerText`)
}

// names are those of keys that write nothing.
var names = map[string]string{"Enter": kb.Enter, "Escape": kb.Escape, "Esc": kb.Escape, "Tab": kb.Tab, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "Space": " ", "Backspace": kb.Backspace, "End": kb.End, "Home": kb.Home, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "F8": kb.F8}

// Press presses keys, one after the other, by their names: a, 1, Enter, Shift+ArrowDown.
func (p *Page) Press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		var modifiers []chromedp.Modifier
		for name, m := range map[string]chromedp.Modifier{"Shift+": chromedp.ModifierShift, "Ctrl+": chromedp.ModifierCtrl} {
			if rest, has := strings.CutPrefix(key, name); has {
				key, modifiers = rest, append(modifiers, m)
			}
		}
		if name, has := names[key]; has {
			key = name
		} else if utf8.RuneCountInString(key) > 1 {
			p.Fatalf("no key is called %q", key)
		}
		p.key(key, modifiers...)
	}
}

func (p *Page) key(key string, modifiers ...chromedp.Modifier) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...), raw)); err != nil {
		p.Fatal(err)
	}
}

// raw has a key that a page takes write nothing, as that of a keyboard.
func raw(k *input.DispatchKeyEventParams) {
	if k.Type == kb.KeyDown {
		k.Type = kb.KeyRawDown
	}
}

// Type types a text where the focus is.
func (p *Page) Type(text string) { p.Helper(); p.key(text) }

// Reach goes on with Tab until what has the focus matches a selector.
func (p *Page) Reach(selector string) {
	p.Helper()
	for range 200 {
		if Eval[bool](p, `document.activeElement?.matches(%s) ?? false`, selector) {
			return
		}
		p.Press("Tab")
	}
	p.Fatalf("Tab does not come to %s, at\n%s", selector, p.Text())
}

// Give gives files to a field, as somebody who has chosen them.
func (p *Page) Give(selector string, files ...string) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.SetUploadFiles(selector, files)); err != nil {
		p.Fatal(err)
	}
}

// Path is where the page is, below the server's address.
func (p *Page) Path() string {
	p.Helper()
	u, err := url.Parse(Eval[string](p, `location.href`))
	if err != nil {
		p.Fatal(err)
	}
	return u.RequestURI()
}

// Close closes the tab, as somebody does.
func (p *Page) Close() {
	p.Helper()
	p.readAll()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.Fatal(err)
	}
}
