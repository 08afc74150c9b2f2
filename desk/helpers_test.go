package desk_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/desk/desktest"
)

// alone is a machine whose questions humans answer, without anybody who proposes.
var alone = desktest.Machine{Name: "alone", Voters: "none"}

// starts starts n sessions of a machine, which differ in n.
func starts(s *desktest.Server, m desktest.Machine, n int) (list []desktest.Session) {
	s.Helper()
	for i := range n {
		list = append(list, s.Start(m.JSON(), fmt.Sprintf(`{"n":%d}`, i+1)))
	}
	return list
}

// published publishes a machine file by a name that there is not yet.
func published(s *desktest.Server, name, file, text string) {
	s.Helper()
	c, err := client.New(client.Config{BaseURL: s.URL, Key: s.Key("root")})
	if err == nil {
		_, err = c.PublishFile(s.Context(), name, api.MachineFile{Name: file, Text: text}, "")
	}
	if err != nil {
		s.Fatal(err)
	}
}

// setting sets what the browser keeps, such as {"hold":0}, and shows the page anew.
func setting(p *desktest.Page, settings string) {
	p.Helper()
	desktest.Eval[bool](p, `(localStorage.setItem("dialai.settings", %s), true)`, settings)
	p.Visit(p.Path())
}

// decided fails the test unless a session was decided so.
func decided(t *testing.T, s *desktest.Server, id, transition string) {
	t.Helper()
	v := s.Session(id)
	if len(v.History) != 1 || v.History[0].TransitionName != transition {
		t.Errorf("%s is %s after %+v, and not decided: %s", v.Subject, v.Status, v.History, transition)
	}
}

// open fails the test unless a session still asks.
func open(t *testing.T, s *desktest.Server, id string) {
	t.Helper()
	if v := s.Session(id); v.Status != "needs_human" || len(v.History) != 0 {
		t.Errorf("%s is %s after %+v: somebody has decided", v.Subject, v.Status, v.History)
	}
}

// question is where a session's question is shown.
func question(v desktest.Session) string { return "/desk/q/" + v.Question.QuestionID }
