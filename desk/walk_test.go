package desk_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
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
	s.PublishSample()
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
