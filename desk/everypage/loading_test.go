package everypage_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// waiting keeps what is to be done in 150 ms until somebody says that they have passed.
const waiting = `{
	const [real, off] = [setTimeout, clearTimeout];
	window.later = [];
	window.setTimeout = (f, ms, ...of) => (ms === 150 ? -later.push(f) : real(f, ms, ...of));
	window.clearTimeout = (id) => (id < 0 ? void (later[-id - 1] = undefined) : off(id));
	window.passed = () => (later.splice(0).forEach((f) => f?.()), true);
}`

// TestLoading: while an answer is held back a page says that it is busy, and shows where it will be only
// after 150 ms; once it is there nothing of that is left, and one that comes sooner never shows it.
func TestLoading(t *testing.T) {
	s := modelled(t, proposes("since it is late"))
	list := s.Seed()
	s.PublishSample()
	asked := s.Start(desktest.Machine{Name: "reading", Voters: reader}.JSON(), `{"n":1}`)
	session, machine := "/desk/sessions/"+asked.SessionID, "/desk/machines/refund-desk"
	p := desktest.OpenIn(s, "root", "/desk/settings", waiting)
	for _, c := range []struct{ path, request string }{
		{"/desk/settings", "*/v1"},
		{"/desk/inbox", "*/v1/inbox?*"},
		{list["plain"].Path() + "?machine=none", "*/v1/inbox/" + list["plain"].Question.QuestionID + "*"},
		{"/desk/reviews", "*/v1/reviews?*"},
		{"/desk/sessions", "*/v1/sessions?*"},
		{session, "*/v1/sessions/" + asked.SessionID},
		{session, "*/v1/sessions/" + asked.SessionID + "/events*"},
		{session, "*/v1/sessions/" + asked.SessionID + "/explain*"},
		{session + "?tab=audit", "*/v1/sessions/" + asked.SessionID + "/audit*"},
		{"/desk/machines", "*/v1/machines?*"},
		{machine, "*/v1/machines/refund-desk"},
		{machine, "*/v1/machines/refund-desk/metrics*"},
		{machine + "/trust", "*/v1/machines/refund-desk/trust-history*"},
		{machine + "/promise", "*/v1/machines/refund-desk/risk*"},
		{machine + "/calibration", "*/v1/machines/refund-desk/calibration*"},
		{machine + "/collapse", "*/v1/machines/refund-desk/collapse*"},
		{machine + "/spend", "*/v1/machines/refund-desk/spend*"},
		{machine + "/who", "*/v1/machines/refund-desk/specialists*"},
		{"/desk/edit?machine=refund-desk", "*/v1/machines/refund-desk"},
	} {
		name := strings.TrimPrefix(c.path, "/desk/") + " without " + strings.Trim(c.request, "*")
		p.Stall(c.request)
		p.Go(c.path)
		p.Wait(`(%s || document.querySelector("header nav")) && document.querySelector("[data-state=loading]") && window.later.some(Boolean)`, c.request == "*/v1")
		if got := desktest.Eval[string](p, `JSON.stringify([document.querySelectorAll(".skeleton").length, [...document.querySelectorAll("[data-state=loading]")].every((e) => e.closest("[aria-busy=true]"))])`); got != "[0,true]" {
			t.Errorf("%s: at once there are %s, want no skeleton, and that it says that it is busy", name, got)
		}
		p.Wait(`window.passed() && document.querySelector("main .skeleton")`)
		p.Unstall()
		p.Settled()
		if desktest.Eval[bool](p, `!!document.querySelector(".skeleton, [aria-busy=true]") || window.later.some(Boolean)`) {
			t.Errorf("%s: once it is there something of what waited is left", name)
		}
	}
}
