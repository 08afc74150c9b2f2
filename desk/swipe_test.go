package desk_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestSwipe: a finger that goes far enough sideways says one of two choices that can be undone, for
// whoever has switched that on; a short way, or down the page, is nothing.
func TestSwipe(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 3)
	final := s.Start(desktest.Kinds["final"].JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", list[0].Path())
	p.Size(360, 780)
	swipe := func(x, y int) {
		t.Helper()
		desktest.Eval[bool](p, `((x, y) => {
			const on = document.querySelector("[data-question]");
			const at = (kind, x, y) => on.dispatchEvent(new PointerEvent(kind, { pointerType: "touch", isPrimary: true, pointerId: 7, clientX: 180 + x, clientY: 300 + y, bubbles: true }));
			at("pointerdown", 0, 0);
			for (let i = 1; i <= 4; i++) at("pointermove", (x * i) / 4, (y * i) / 4);
			at("pointerup", x, y);
			return true;
		})(%s, %s)`, x, y)
	}
	nothing := func(why string) {
		t.Helper()
		if desktest.Eval[bool](p, `!!document.querySelector("[data-held], dialog, [data-choice] input:checked")`) {
			t.Errorf("%s says something", why)
		}
	}
	swipe(-200, 5)
	nothing("a finger, where that is switched off,")
	p.Set(`{"swipe":true,"hold":10}`)
	p.Wait(`document.querySelector("[data-question]").style.touchAction === "pan-y"`)
	swipe(-60, 0)
	nothing("a short way")
	swipe(-200, 300)
	nothing("a way down the page")
	swipe(-200, 5)
	p.Wait(`document.querySelector("[data-held]") && document.querySelector("[data-question]").dataset.question === %s`, list[1].Question.QuestionID)
	p.Set(`{"swipe":true,"hold":0}`)
	p.Visit(list[2].Path())
	p.Wait(`document.querySelector("[data-question]").style.touchAction === "pan-y"`)
	swipe(200, 5)
	p.Wait(`document.querySelector("[data-outcome]")?.dataset.outcome === %s`, list[2].Question.QuestionID)
	decided(t, s, list[2].SessionID, "refuse")
	p.Visit(final.Path())
	p.Settled()
	swipe(-200, 5)
	nothing("a finger on what cannot be undone")
}

// TestCounts: beside the names of the pages stands how much waits there, up to two hundred.
func TestCounts(t *testing.T) {
	s := desktest.Serve(t)
	s.Seed()
	p := desktest.Open(s, "carol", "/desk/sessions")
	counts := `[...document.querySelectorAll("header nav a")].map((a) => a.innerText.replace(/\s+/g, "")).slice(0, 2).join()`
	var reviews struct{ Items []any }
	s.Call("carol", 200, "GET", "/v1/reviews?human=carol", "", &reviews)
	var waiting struct{ Items []any }
	s.Call("carol", 200, "GET", "/v1/inbox?human=carol", "", &waiting)
	if len(reviews.Items) == 0 || len(waiting.Items) == 0 {
		t.Fatal("nothing waits")
	}
	p.Wait(counts+` === "Inbox" + %s + ",Reviews" + %s`, len(waiting.Items), len(reviews.Items))
	s.Starts(desktest.Alone, 60)
	p.Wait(counts+` === "Inbox" + %s + ",Reviews" + %s`, len(waiting.Items)+60, len(reviews.Items))
	p.Visit("/desk/sessions")
	p.Wait(counts+` === "Inbox" + %s + ",Reviews" + %s`, len(waiting.Items)+60, len(reviews.Items))
	s.Starts(desktest.Alone, 140)
	p.Visit("/desk/inbox")
	p.Wait(counts + `.startsWith("Inbox200+,")`)
}

// TestCountsWhatIsHeardMeanwhile: what comes while the counts are on their way is counted, too.
func TestCountsWhatIsHeardMeanwhile(t *testing.T) {
	s := desktest.Serve(t)
	s.Starts(desktest.Alone, 3)
	p := desktest.OpenIn(s, "carol", "/desk/sessions", `const plain = window.fetch;
		window.fetch = async (...all) => {
			const answer = await plain(...all);
			if (/\/v1\/inbox\?.*limit=200/.test(all[0].url ?? all[0]) && !window.release) await new Promise((go) => (window.release = go));
			return answer;
		};`)
	count := `[...document.querySelectorAll("header nav a")][0].innerText.replace(/\s+/g, "")`
	p.Wait(`window.release !== undefined`)
	s.Starts(desktest.Alone, 1)
	p.Wait(count + ` === "Inbox1"`) // is heard before it is known how many there were
	desktest.Eval[bool](p, `window.release() === undefined`)
	p.Wait(count + ` === "Inbox4"`)
}
