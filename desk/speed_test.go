package desk_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/desk/desktest"
)

// How fast the desk is: go test ./desk -run '^$' -bench . -benchtime 1x. Figures are those of pages
// beside a bare one, which has the server send it the same bytes and does nothing with them, in turns
// within one run, and medians of five. docs/performance.md has them.

var eventsFor = flag.Duration("events-for", time.Minute, "for how long BenchmarkEvents has events come")

// timing has a page note when it can be used: ready is how many ms after its beginning, 0 before. The
// bare page is /healthz, which asks for all that the other has asked for, at once.
const timing = `(() => {
	globalThis.ready = 0;
	let all = false;
	const usable = {
		q: () => (document.body?.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true })), document.querySelector("[data-choice] input:checked")),
		sessions: () => document.querySelector("main[aria-busy=false] [data-event]"),
		healthz: () => all,
	}[location.pathname.split("/").findLast((part) => ["q", "sessions", "healthz"].includes(part))];
	const look = () => (usable?.() ? (globalThis.ready = performance.now()) : requestAnimationFrame(look));
	if (usable) requestAnimationFrame(look);
	if (location.pathname !== "/healthz") return;
	const headers = { "Dialai-Desk": JSON.parse(localStorage.getItem("dialai.token")) };
	Promise.all(JSON.parse(sessionStorage.getItem("loads")).map((url) => fetch(url, { headers, cache: "no-store" }).then((r) => r.text()))).then((texts) => {
		document.documentElement.append(String(texts.join("").length));
		all = true;
	});
})()`

// loads has a page keep what it has asked for, for the bare page to ask for.
func loads(p *desktest.Page) (bytes int) {
	p.Helper()
	return desktest.Eval[int](p, `(() => {
		const list = performance.getEntriesByType("resource").filter((e) => !new URL(e.name).pathname.endsWith("/events") || e.name.includes("/sessions/"));
		sessionStorage.setItem("loads", JSON.stringify(list.map((e) => e.name)));
		return list.reduce((n, e) => n + e.encodedBodySize, 0);
	})()`)
}

// visited is how many ms pass until a page can be used.
func visited(p *desktest.Page, path string) float64 {
	p.Helper()
	p.Go(path)
	p.Wait(`globalThis.ready > 0`)
	return desktest.Eval[float64](p, `globalThis.ready`)
}

// cold reports how long a page takes, and how long beside a bare one.
func cold(b *testing.B, p *desktest.Page, path string) {
	b.Helper()
	p.Expect("405 /favicon.ico")
	p.Cold()
	visited(p, path)
	p.Settled()
	b.ReportMetric(float64(loads(p)), "B")
	var ours, bare []float64
	for b.Loop() {
		for range 5 {
			ours = append(ours, visited(p, path))
			bare = append(bare, visited(p, "/healthz"))
		}
	}
	b.ReportMetric(median(ours), "ms")
	b.ReportMetric(median(ours)/median(bare), "x-bare")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkFirstKey: a question is opened by a browser that was never here, and a digit picks an
// answer. The goal is 3 times a bare page.
func BenchmarkFirstKey(b *testing.B) {
	s := desktest.Serve(b)
	list := s.Starts(desktest.Kinds["plain"], 20)
	cold(b, desktest.OpenIn(s, "carol", "/desk/settings", timing), list[0].Path())
}

// BenchmarkNextQuestion: Enter, and the next question is drawn. The goal is a frame.
func BenchmarkNextQuestion(b *testing.B) {
	s := desktest.Serve(b)
	s.Starts(desktest.Kinds["plain"], 20)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Set(`{"hold":10}`)
	var frames, ms []float64
	for b.Loop() {
		for range 5 {
			p.Press("1")
			p.Wait(`document.querySelector("[data-choice] input:checked")`)
			took := desktest.Eval[[]float64](p, `new Promise((done) => requestAnimationFrame(() => {
				const of = () => document.querySelector("[data-question]")?.dataset.question;
				const [was, from] = [of(), performance.now()];
				let n = 0;
				document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
				const look = () => (n++, of() && of() !== was ? done([n, performance.now() - from]) : requestAnimationFrame(look));
				requestAnimationFrame(look);
			}))`)
			frames, ms = append(frames, took[0]), append(ms, took[1])
			p.Press("Escape") // takes it back: the next one is as new
			p.Wait(`!document.querySelector("[data-held]")`)
		}
	}
	b.ReportMetric(median(frames), "frames")
	b.ReportMetric(median(ms), "ms")
}

// many starts sessions as fast as they come, of which nobody carries any on.
func many(s *desktest.Server, n int) {
	s.Helper()
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range work {
				req, err := http.NewRequestWithContext(s.Context(), "POST", s.URL+"/v1/sessions", strings.NewReader(fmt.Sprintf(`{"machine":%s,"metaJson":{"n":%d},"drive":false}`, desktest.Alone.JSON(), i)))
				if err != nil {
					s.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+s.Key("root"))
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					s.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != 201 {
					s.Errorf("a session is answered with %d", resp.StatusCode)
				}
			}
		})
	}
	for i := range n {
		work <- i + 1
	}
	close(work)
	wg.Wait()
}

// scrolling scrolls by a third of the window a frame, and is the longest frame and most rows meanwhile.
const scrolling = `new Promise((done) => {
	let [left, was, longest, most] = [120, performance.now(), 0, 0];
	const step = (now) => {
		most = Math.max(most, document.querySelectorAll("[data-session]").length);
		if (left < 120) longest = Math.max(longest, now - was);
		was = now;
		if (left-- === 0) return done([longest, most]);
		scrollBy(0, left % 40 < 20 ? -innerHeight / 3 : innerHeight / 3 - 50);
		requestAnimationFrame(step);
	};
	requestAnimationFrame(step);
})`

// BenchmarkManySessions: End goes on to the last of 10,000 sessions, and the list is scrolled. The
// goal is 60 rows and 50 ms a frame.
func BenchmarkManySessions(b *testing.B) {
	n := 10_000
	if testing.Short() {
		n = 600
	}
	s := desktest.Serve(b)
	many(s, n)
	p := desktest.Open(s, "olga", "/desk/sessions")
	var end, longest, rows []float64
	for b.Loop() {
		for range 5 {
			p.Visit("/desk/sessions")
			from := time.Now()
			p.Press("End")
			p.Wait(`document.querySelector("[data-at='" + %s + "']")`, n-1)
			end = append(end, time.Since(from).Seconds())
			p.Settled()
			took := desktest.Eval[[]float64](p, scrolling)
			longest, rows = append(longest, took[0]), append(rows, took[1])
		}
	}
	b.ReportMetric(median(end), "s-End")
	b.ReportMetric(median(longest), "ms-longest-frame")
	b.ReportMetric(slices.Max(rows), "rows")
}

// TestFewRows: of however many sessions only those are in the page that are seen, up to 60, in a
// window as high as two screens, while it is scrolled and at its ends.
func TestFewRows(t *testing.T) {
	s := desktest.Serve(t)
	many(s, 450)
	p := desktest.Open(s, "olga", "/desk/sessions")
	p.Size(1280, 2400)
	p.Visit("/desk/sessions")
	p.Press("End")
	p.Wait(`document.querySelector("[data-at='449']")`)
	if took := desktest.Eval[[]float64](p, scrolling); took[1] > 60 || took[1] < 20 {
		t.Errorf("%v rows are in the page", took[1])
	}
	if n := desktest.Eval[int](p, `+document.querySelector("[role=grid]").getAttribute("aria-rowcount")`); n != 451 {
		t.Errorf("the list says that it has %d rows", n)
	}
}

// long is a session of at least 1,000 events.
func long(s *desktest.Server) desktest.Session {
	s.Helper()
	v := s.Start(strings.NewReplacer(`"max_steps":2`, `"max_steps":220`, `"budget"`, `"loop_detection":{"max_state_visits":1000},"budget"`).Replace(desktest.Working), `{"n":1}`)
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var all map[string]any
		s.Call("root", 200, "GET", "/v1/sessions/"+v.SessionID, "", &all)
		n, _ := all["sequence"].(float64)
		if n >= 1000 {
			return v
		}
		if time.Now().After(until) {
			s.Fatalf("there are %v events: %v", n, all["reason"])
		}
	}
}

// elements is how many elements and other nodes a page has.
const elements = `(() => {
	let n = 0;
	for (const all = document.createTreeWalker(document); all.nextNode(); ) n++;
	return n;
})()`

// BenchmarkLongSession: a session of 1,000 events is shown to a browser that was never here. The goal
// is 4 times a bare page, and 2,500 nodes.
func BenchmarkLongSession(b *testing.B) {
	s := desktest.Serve(b)
	v := long(s)
	p := desktest.OpenIn(s, "olga", "/desk/settings", timing)
	cold(b, p, "/desk/sessions/"+v.SessionID)
	p.Visit("/desk/sessions/" + v.SessionID)
	b.ReportMetric(desktest.Eval[float64](p, elements), "nodes")
}

// TestFewNodes: a session of 1,000 events is a page of 2,500 nodes at most.
func TestFewNodes(t *testing.T) {
	s := desktest.Serve(t)
	v := long(s)
	p := desktest.Open(s, "olga", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector(".tabs .num")`)
	events := desktest.Eval[int](p, `+document.querySelector(".tabs .num").innerText.replaceAll(",", "")`)
	nodes := desktest.Eval[int](p, elements)
	t.Logf("%d nodes of %d events", nodes, events)
	if events < 1000 || nodes > 2500 || nodes < 500 {
		t.Errorf("%d events are %d nodes", events, nodes)
	}
}

// BenchmarkEvents: 50 events a second come for a minute, of 50 sessions that are cancelled and taken
// up again. The goal is that nothing takes the page more than 100 ms at once, and that it then holds
// as much memory as before, up to a tenth.
func BenchmarkEvents(b *testing.B) {
	for _, page := range []struct{ name, who, path string }{{"inbox", "carol", "/desk/inbox"}, {"sessions", "olga", "/desk/sessions"}, {"session", "olga", ""}} {
		b.Run(page.name, func(b *testing.B) {
			s := desktest.Serve(b)
			list := s.Starts(desktest.Alone, 50)
			if page.path == "" {
				page.path = "/desk/sessions/" + list[0].SessionID
				storm(s, list[:1], 3*time.Second) // so that as much is shown as will be
			}
			p := desktest.Open(s, page.who, page.path)
			p.Wait(`document.querySelector("header .state").innerText === "live"`)
			var longest, kept, came []float64
			for b.Loop() {
				l, k, c := stormed(s, p, list)
				longest, kept, came = append(longest, l), append(kept, k), append(came, c)
			}
			b.ReportMetric(median(longest), "ms-longest-task")
			b.ReportMetric(median(kept), "x-heap")
			b.ReportMetric(median(came), "events/s")
		})
	}
}

// stormed has events come to a page, and is how long the longest task of it took, how much more it holds
// then, and how many came a second. It is warm by then: what was compiled for the first events is no leak.
func stormed(s *desktest.Server, p *desktest.Page, list []desktest.Session) (longest, kept, came float64) {
	s.Helper()
	span := *eventsFor
	if testing.Short() {
		span = 2 * time.Second
	}
	storm(s, list, span/3)
	p.Settled()
	desktest.Eval[bool](p, `(globalThis.longest = 0, new PerformanceObserver((l) => l.getEntries().forEach((e) => (globalThis.longest = Math.max(longest, e.duration)))).observe({ type: "longtask" }), true)`)
	before := p.Heap()
	came = storm(s, list, span)
	p.Settled()
	longest = desktest.Eval[float64](p, `globalThis.longest`)
	heard, after := desktest.Eval[int](p, `globalThis.heard.length`), p.Heap()
	s.Logf("%.0f B before, %.0f after %d messages", before, after, heard)
	desktest.Eval[bool](p, `new Promise((done) => setTimeout(() => {
		for (const from = performance.now(); performance.now() - from < 80; );
		done(true);
	}))`)
	p.Wait(`globalThis.longest >= 80`) // or nobody would have noticed
	return longest, after / before, came
}

// storm has three events come each 60 ms: a session is cancelled, is taken up again, and asks again.
func storm(s *desktest.Server, list []desktest.Session, span time.Duration) (each float64) {
	s.Helper()
	n, from := 0, time.Now()
	for tick := time.NewTicker(60 * time.Millisecond); time.Since(from) < span; <-tick.C {
		path := "/v1/sessions/" + list[n%len(list)].SessionID
		s.Call("root", 200, "POST", path+"/cancel", `{"note":"a load"}`, nil)
		s.Call("root", 200, "POST", path+"/resume", `{"note":"a load"}`, nil)
		n++
	}
	return float64(3*n) / time.Since(from).Seconds()
}
