package desk_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/strategies"
)

// The walk of docs/desk.md is played as it is written: what stands there as a key is pressed, what
// stands in quotes must be said by the page, and an address is gone to.

var photograph = flag.Bool("photograph", false, "take the photographs of docs/desk.md anew")

const docs = "../docs"

// acts are what the text has the reader do, and see.
var acts = regexp.MustCompile("(?m)<kbd>(.+?)</kbd>|“([^”]+)”|`(/desk/[^`]*)`|^!\\[[^\\]]*\\]\\(desk/(.+?)\\.png\\)$|^## (.+)$")

// TestWalk plays docs/desk.md.
func TestWalk(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "desk.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := desktest.Serve(t)
	publish(t, s)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Size(1280, 800)
	section, photos := "", 0
	for _, m := range acts.FindAllStringSubmatch(string(text), -1) {
		switch key, says, path, photo, title := m[1], m[2], m[3], m[4], m[5]; {
		case title == "What is where":
			if photos == 0 {
				t.Error("no photograph was taken")
			}
			return
		case title != "":
			section = title
			t.Log(section)
			if title == "6. Try another policy" { // which takes a key that may configure
				p = desktest.Open(s, "root", "/desk/machines")
				p.Size(1280, 800)
			}
		case key != "":
			p.Press(key)
		case says != "":
			p.Says(strings.Join(strings.Fields(says), " "))
		case path != "":
			p.Visit(path)
		case photo != "":
			photos++
			taken(t, p, photo)
		}
	}
	t.Errorf("the walk has no end after %q", section)
}

// taken looks whether there is a photograph, or takes it.
func taken(t *testing.T, p *desktest.Page, name string) {
	t.Helper()
	path := filepath.Join(docs, "desk", name+".png")
	if *photograph {
		if err := os.WriteFile(path, p.Photo(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || len(text) < 10_000 || len(text) > 200_000 {
		t.Errorf("%s has %d bytes, %v: go test ./desk -run TestWalk -photograph takes it", path, len(text), err)
	}
}

// publish publishes the sample machine with carol in the place of the clerk, has her decide some
// refunds, and leaves six.
func publish(t *testing.T, s *desktest.Server) {
	t.Helper()
	name, text, ok := machines.Read("refund-desk")
	if !ok {
		t.Fatal("there is no sample refund-desk")
	}
	text = bytes.ReplaceAll(text, []byte("clerk"), []byte("carol"))
	published(s, "refund-desk", name, string(text))
	m, err := machine.Parse(name, text, strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	for i, amount := range []int{20, 80, 25, 150, 30, 12, 300, 40, 18, 90, 22, 60, 25, 110, 15, 20, 240, 310, 18, 95, 500} {
		v := s.Start(string(m.JSON()), fmt.Sprintf(`{"order":"A-%d","amount":%d,"reason":%q,"orders":%d}`, i+1, amount, []string{"late", "damaged", "dislike"}[i%3], i%9))
		if i < 15 {
			s.Decide("carol", v.SessionID, map[bool]string{true: "refund", false: "refuse"}[amount <= 100 && i%3 != 2])
		}
	}
}
