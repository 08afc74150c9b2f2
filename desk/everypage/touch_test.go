package everypage_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// small are things that can be pressed and are less than 44 px wide or high. The label that holds a box is
// pressed with it, and a link that is stretched over its row is as large as that. Left out are links in a
// sentence, states as they are drawn (the table beside them has the same), and what is out of reach.
const small = `(() => {
	const within = document.querySelector("dialog[open]") ?? document;
	const sizes = (e) => {
		const after = getComputedStyle(e, "::after");
		return [e, ...(e.labels ?? [])].filter((of) => of === e || of.contains(e)).concat(after.content !== "none" && after.position === "absolute" ? e.offsetParent : []).map((of) => of.getBoundingClientRect());
	};
	const inSentence = (e) => e.matches("a") && getComputedStyle(e).display === "inline" && e.parentElement.textContent.replace(e.textContent, "").trim() !== "";
	const all = [...within.querySelectorAll("a[href], button, input, select, textarea, summary, [role=button], label:has(> input)")].filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && !e.matches(".over, .hidden, .skip:not(:focus)") && !inSentence(e));
	return JSON.stringify([all.length, ...all.filter((e) => !sizes(e).some((r) => r.width > 43.9 && r.height > 43.9)).map((e) => sizes(e).map((r) => Math.round(r.width) + "x" + Math.round(r.height)).join() + " " + e.outerHTML.slice(0, 160))]);
})()`

// moving is what moves by itself, or will, in the page and in shadows of it.
const moving = `(() => {
	const roots = [document, ...[...document.querySelectorAll("*")].flatMap((e) => e.shadowRoot ?? [])];
	const name = (e) => e.outerHTML.slice(0, 160);
	const runs = roots.flatMap((r) => r.getAnimations()).filter((a) => a.playState === "running" && a.effect.getComputedTiming().duration > 0).map((a) => "runs: " + name(a.effect.target));
	const some = (of) => of.split(",").some((d) => parseFloat(d) > 0);
	const will = roots.flatMap((r) => [...r.querySelectorAll("*")]).filter((e) => {
		const s = getComputedStyle(e);
		return some(s.transitionDuration) || (s.animationName !== "none" && some(s.animationDuration)) || s.scrollBehavior === "smooth";
	}).map((e) => "would: " + name(e));
	return [...new Set([...runs, ...will])].slice(0, 5).join("\n");
})()`

// TestTouchAndMotion: whatever can be pressed is large enough for a finger, where one is used, on a
// telephone and on a tablet; and nothing moves for whoever wants nothing to.
func TestTouchAndMotion(t *testing.T) {
	s := modelled(t, proposes("since it is late"))
	list := s.Seed()
	s.PublishSample()
	stopped := s.Start(desktest.Working, `{"n":1}`)
	asked := s.Start(desktest.Machine{Name: "reading", Voters: reader}.JSON(), `{"n":1}`)
	s.Starts(desktest.Alone, 2) // the newest
	p := desktest.Open(s, "root", "/desk/inbox")
	p.Expect("404 /v1/")

	p.Stall("*/v1/sessions?*")
	p.Show("/desk/sessions")
	p.Wait(`document.querySelector(".skeleton")`)
	if desktest.Eval[string](p, moving) == "" {
		t.Error("what waits does not move, or the test does not see what moves")
	}
	still := func(name string) {
		t.Helper()
		if got := desktest.Eval[string](p, moving); got != "" {
			t.Errorf("%s: for whoever wants nothing to move there moves\n%s", name, got)
		}
	}
	p.Media("prefers-reduced-motion", "reduce")
	still("what waits")
	p.Unstall()
	p.Touch()
	pressed := 0
	look := func(name string) {
		t.Helper()
		still(name)
		for _, width := range []int64{360, 1280} {
			p.Size(width, 900)
			p.Wait(`innerWidth === %s && matchMedia("(pointer: coarse)").matches`, width)
			p.Narrow(name)
			got := desktest.Eval[string](p, small)
			n, rest, _ := strings.Cut(strings.Trim(got, "[]"), ",")
			if pressed++; n == "0" {
				t.Errorf("%s, %d wide: the test does not see what can be pressed", name, width)
			}
			if rest != "" {
				t.Errorf("%s, %d wide: too small for a finger:\n%s", name, width, strings.ReplaceAll(rest, `",`, "\",\n"))
			}
		}
	}
	at := func(path string, keys ...string) {
		t.Helper()
		p.Visit(path)
		if len(keys) > 0 {
			p.Press(keys...)
		}
	}
	dialog := func(name string) {
		t.Helper()
		p.Wait(`document.querySelector("dialog[open]")`)
		look(name)
		p.Press("Escape")
		p.Wait(`!document.querySelector("dialog")`)
	}

	at("/desk/inbox")
	look("inbox")
	desktest.Eval[bool](p, `(sessionStorage.setItem("dialai.human", '"carol"'), true)`) // as whom root speaks
	at("/desk/inbox")
	p.Press("x", "b")
	dialog("bulk")
	p.Press("?")
	dialog("keys")
	at("/desk/inbox?machine=none")
	look("inbox filtered")
	at(list["parameters"].Path(), "1")
	p.Wait(`document.querySelector("#payload-amount")`)
	look("question with a form")
	at(list["final"].Path(), "1")
	p.Reach("article form > label textarea")
	p.Type("why")
	p.Press("Ctrl+Enter")
	dialog("final")
	at(list["permission"].Path())
	look("question")
	p.Press("r")
	dialog("reveal")
	at("/desk/q/none.1")
	look("question gone")
	at("/desk/reviews")
	look("reviews")
	at("/desk/reviews/none.1")
	look("review gone")

	at("/desk/sessions", "Home", "x")
	look("sessions")
	p.Press("c")
	dialog("cancel")
	p.Press("n")
	dialog("new session")
	at("/desk/sessions?machine=none")
	look("sessions filtered")
	at("/desk/sessions/" + stopped.SessionID)
	desktest.Eval[bool](p, `(document.querySelector("[data-event] details").open = true)`)
	p.Wait(`document.querySelector("[data-why], .bars, .below") && document.querySelectorAll("[data-round]").length === 3`)
	look("session")
	p.Press("l")
	dialog("raise")
	at("/desk/sessions/" + asked.SessionID + "?tab=audit")
	p.Wait(`document.querySelector(".calls")`)
	look("calls")
	at("/desk/sessions/" + list["adjudication"].SessionID)
	look("session completed")
	at("/desk/sessions/none")
	look("session gone")

	at("/desk/machines")
	look("machines")
	for _, tab := range append([]string{"/none"}, tabs...) {
		at("/desk/machines/refund-desk" + tab)
		look("machine " + tab)
	}
	p.Reach("main form button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("main figure")`)
	look("machine simulated")
	at("/desk/machines/plain")
	look("machine gone")
	at("/desk/machines/refund-desk/try")
	p.Reach("main form input[inputmode=decimal]")
	p.Type("0.9")
	p.Press("Enter")
	p.Wait(`document.querySelector("main thead")`)
	look("machine tried")
	at("/desk/machines/refund-desk/collapse")
	p.Reach("section.card button")
	p.Press("Enter")
	dialog("freeze")
	at("/desk/machines/refund-desk/trust")
	p.Reach("figure button")
	p.Press("Enter")
	look("a chart as a table")

	at("/desk/edit?machine=refund-desk")
	p.Says("sound")
	p.Reach(".code")
	p.Press("Ctrl+End")
	p.Wait(`document.querySelector(".code").shadowRoot.querySelector(".cm-focused")`)
	look("editor")
	p.Type("}")
	p.Wait(`document.querySelector("main .problems")`)
	look("editor with problems")
	at("/desk/settings")
	look("settings")
	at("/desk/nowhere")
	look("nowhere")
	p.Set(`{"hold":10}`)
	at(list["plain"].Path(), "1")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	look("held")
	desktest.Eval[bool](p, `([...document.querySelectorAll("[data-held] button")].at(-1).click(), true)`)
	p.Wait(`document.querySelector("[data-outcome]")`)
	look("outcome")
	p.Expect("401 /")
	at("/desk/settings")
	desktest.Eval[bool](p, `([...document.querySelectorAll("main button")].at(-1).click(), true)`)
	p.Wait(`document.querySelector("input[type=password]")`)
	look("sign-in")
	if pressed < 80 {
		t.Errorf("only %d places are looked at", pressed)
	}
}
