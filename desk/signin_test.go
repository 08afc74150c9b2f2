package desk_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/desk/desktest"
)

// TestSignInEnds: when a sign-in is over the page asks for a key, and what was typed is where it was.
func TestSignInEnds(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", v.Path())
	p.Expect("401 /v1")
	p.Press("2")
	p.Reach("textarea")
	p.Type("no receipt")
	p.Reach("button.main")
	desktest.Eval[int](p, `fetch("/desk/session", { method: "DELETE", headers: { "Dialai-Desk": JSON.parse(localStorage.getItem("dialai.token")) } }).then((r) => r.status)`)
	p.Press("Ctrl+Enter") // is answered with 401, as is whatever else the page asks for, which may come first
	p.Says("You were signed out. Sign in to go on: what you typed is kept.")
	p.Reach("input[type=password]")
	p.Type(s.Key("carol"))
	p.Press("Enter")
	p.Wait(`location.pathname === %s || document.querySelector("[data-refused] a") || document.querySelector("[data-question]")?.dataset.question === %s`, v.Path(), v.Question.QuestionID) // where it was, told of, or shown at once
	p.Visit(v.Path())
	p.Wait(`document.querySelector("[data-choice=refuse] input")?.checked && document.querySelector("textarea").value === "no receipt"`)
	open(t, s, v.SessionID)
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "refuse")
}

// TestSignOut: who signs out has a word sent that was held back, and leaves nothing of what was loaded to whoever
// signs in next.
func TestSignOut(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.OpenIn(s, "carol", list[0].Path(), `sessionStorage.loads = +(sessionStorage.loads ?? 0) + 1;`)
	p.Expect("401 /v1")
	p.Press("1", "Enter")
	p.Wait(`document.querySelector("[data-question]")?.dataset.question === %s`, list[1].Question.QuestionID) // it is held
	open(t, s, list[0].SessionID)
	desktest.Eval[bool](p, `(document.querySelector("a[href$='/desk/settings']").click(), true)`)
	p.Says("Sign out")
	before := desktest.Eval[int](p, `+sessionStorage.loads`)
	desktest.Eval[bool](p, `([...document.querySelectorAll("button")].find((b) => b.innerText === "Sign out").click(), true)`)
	p.Wait(`document.querySelector("input[type=password]") && !document.body.innerText.includes("alone")`)
	decided(t, s, list[0].SessionID, "pay")
	if loads, kept := desktest.Eval[int](p, `+sessionStorage.loads`), desktest.Eval[string](p, `Object.keys(localStorage).concat(Object.keys(sessionStorage)).filter((k) => k !== "loads").join()`); loads <= before || strings.Contains(kept, "held") || strings.Contains(kept, "token") || strings.Contains(kept, "draft") {
		t.Errorf("after %d loads, and %d before, what is kept is %s", loads, before, kept)
	}
}

// TestStaySignedIn: two minutes before one is signed out the page says so, also after it was loaded anew, and
// whatever the clock of the computer says; a call puts it off, a stream that goes on does not.
func TestStaySignedIn(t *testing.T) {
	s := desktest.Serve(t)
	s.Starts(desktest.Alone, 1)
	p := desktest.OpenIn(s, "carol", "/desk/inbox", `{
		const now = Date.now;
		window.ahead = sessionStorage.getItem("slow") ? -40 * 60000 : 0;
		Date.now = () => now() + window.ahead;
	}`)
	p.Visit("/desk/settings")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("nav .count")?.innerText === "1"`)
	notice := `[...document.querySelectorAll("[role=alert]")].some((e) => e.innerText.includes("You will be signed out in two minutes"))`
	if desktest.Eval[bool](p, notice) {
		t.Error("it is said at once")
	}
	desktest.Eval[bool](p, `(window.ahead += 28.5 * 60000, true)`)
	p.Wait(notice)
	p.Reach("[role=alert] button")
	p.Press("Enter")
	p.Wait(`!(` + notice + `)`)
	desktest.Eval[bool](p, `(sessionStorage.setItem("slow", "1"), true)`)
	p.Visit("/desk/settings")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("nav .count")?.innerText === "1"`)
	if desktest.Eval[bool](p, notice) {
		t.Error("a clock that is slow signs nobody out")
	}
	desktest.Eval[bool](p, `(window.ahead += 28.5 * 60000, true)`)
	p.Wait(notice)
}

// TestTicket: a link signs in once; its ticket leaves the address at once, and another time it says
// what it is.
func TestTicket(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	link := v.Path() + "#t=" + s.Ticket("carol")
	p := desktest.Open(s, "", "/desk/settings")
	p.Expect("401 /desk/session")
	p.Visit("/desk/settings?again")
	p.Visit(link)
	p.Says("Should this be paid?")
	if got := desktest.Eval[string](p, `location.hash + [...document.querySelectorAll("a")].map((a) => a.href).join()`); strings.Contains(got, "t=") {
		t.Errorf("the address keeps the ticket: %s", got)
	}
	q := desktest.Open(s, "", "/desk/settings")
	q.Expect("401 /desk/session")
	q.Visit("/desk/settings?again")
	q.Visit(link)
	q.Says("That link has been used, or is older than a minute.")
}

// TestServed: the page is at /desk/, to which browsers are led; programs and the sign-in are answered
// as before.
func TestServed(t *testing.T) {
	s := desktest.Serve(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct{ method, path, accept, want string }{
		{"GET", "/dashboard", "text/html", "303 /desk/"},
		{"GET", "/", "text/html,application/xhtml+xml", "303 /desk/"},
		{"GET", "/desk/inbox", "text/html", "200 "},
		{"GET", "/desk/q/x.1", "*/*", "200 "},
		{"GET", "/desk/assets/none.js", "*/*", "404 "},
		{"POST", "/desk/inbox", "*/*", "405 "},
		{"POST", "/desk/session", "*/*", "415 "},
		{"DELETE", "/desk/session", "*/*", "401 "},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("Location")); got != c.want {
			t.Errorf("%s %s is answered %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

// TestTabs: eight tabs of a browser are live over one stream, and all hear what comes.
func TestTabs(t *testing.T) {
	s := desktest.Serve(t)
	pages := []*desktest.Page{desktest.Open(s, "carol", "/desk/inbox")}
	for range 7 {
		pages = append(pages, pages[0].Tab("/desk/inbox"))
	}
	for _, p := range pages {
		p.Wait(`document.querySelector("header .state").innerText === "live"`)
	}
	s.Starts(desktest.Alone, 1)
	for _, p := range pages {
		p.Says("1 new")
	}
	oneStream(t, s, "for eight tabs")
	pages[3].Close()
	s.Starts(desktest.Alone, 1)
	for i, p := range pages {
		if i != 3 {
			p.Says("2 new")
		}
	}
}

// oneStream waits until the server has one stream open: it learns of one that was closed when it writes.
func oneStream(t *testing.T, s *desktest.Server, what string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		switch n := streams(t, s); {
		case n == 1:
			return
		case time.Now().After(end):
			t.Fatalf("the server has %d streams open %s", n, what)
		}
	}
}

// streams is how many streams the server has open.
func streams(t *testing.T, s *desktest.Server) (n int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Key("root"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), " "); strings.HasPrefix(name, "dialai_sse_subscribers") {
			of, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			n += of
		}
	}
	return n
}
