package desk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/desk/desktest"
)

// listening keeps what whoever listens is told: each text of a region that says of itself that it is read
// out when it changes, without what is hidden from them, and when.
const listening = `{
	window.told = [];
	const had = new Map();
	const text = (of) => {
		const copy = of.cloneNode(true);
		copy.querySelectorAll("[aria-hidden=true]").forEach((e) => e.remove());
		return copy.textContent.replace(/\s+/g, " ").trim();
	};
	const listen = () => {
		for (const of of document.querySelectorAll("[role=status], [role=alert], [role=log], [role=timer], [aria-live]:not([aria-live=off])")) {
			const now = text(of);
			if (now && now !== had.get(of)) told.push({ at: performance.now(), text: now });
			had.set(of, now);
		}
	};
	addEventListener("DOMContentLoaded", () => new MutationObserver(listen).observe(document.documentElement, { subtree: true, childList: true, characterData: true, attributes: true }));
}`

type told struct {
	At   float64
	Text string
}

// TestSaidRarely: however much happens, whoever listens is told at most once in five seconds what has
// changed, on every page that changes.
func TestSaidRarely(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	list := s.Starts(desktest.Alone, 4)
	p := desktest.OpenIn(s, "root", "/desk/inbox", listening)
	pages := map[string]*desktest.Page{"inbox": p}
	for name, path := range map[string]string{"sessions": "/desk/sessions", "session": "/desk/sessions/" + list[0].SessionID, "machine": "/desk/machines/refund-desk/spend"} {
		pages[name] = p.TabIn(path, listening)
	}
	for _, p := range pages {
		p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector(".foot")`)
		desktest.Eval[bool](p, `((told.length = 0), true)`)
	}
	from := time.Now()
	s.Starts(desktest.Alone, 1)
	storm(s, list, 11*time.Second)
	s.Call("root", 200, "POST", "/v1/sessions/"+list[0].SessionID+"/cancel", `{"note":"not wanted"}`, nil)
	pages["session"].Wait(`told.some((of) => of.text.includes("stopped"))`)
	for name, want := range map[string]string{"inbox": "New in the inbox: ", "sessions": " new", "session": "stopped", "machine": "New in the inbox: "} {
		got, span := desktest.Eval[[]told](pages[name], `told`), time.Since(from)
		if len(got) == 0 || len(got) > 1+int(span/(5*time.Second)) {
			t.Errorf("%s: in %v one is told %d texts: %+v", name, span, len(got), got)
		}
		all := ""
		for i, of := range got {
			if all += of.Text + "\n"; i > 0 && of.At-got[i-1].At < 4900 {
				t.Errorf("%s: after %.0f ms one is told the next: %+v", name, of.At-got[i-1].At, got)
			}
		}
		if !strings.Contains(all, want) {
			t.Errorf("%s: one is told %q, and nothing of %q", name, all, want)
		}
	}
}

// TestHoldSaidOnce: that a word is held back, and for how long, is said once, and is not counted aloud.
func TestHoldSaidOnce(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.OpenIn(s, "carol", v.Path(), listening)
	p.Press("1", "Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	p.Wait(`document.querySelector("[data-held]").innerText.includes("sent in 1 s")`) // which is seen
	p.Wait(`document.querySelector("[data-outcome]")`)
	var of []string
	for _, one := range desktest.Eval[[]told](p, `told`) {
		if strings.Contains(one.Text, "sent in") || strings.Contains(one.Text, "You: ") {
			of = append(of, one.Text)
		}
	}
	if len(of) != 2 || !strings.Contains(of[0], "sent in 3 s") || !strings.Contains(of[1], "You: pay.") {
		t.Errorf("of a word that is held back one is told %q", of)
	}
}
