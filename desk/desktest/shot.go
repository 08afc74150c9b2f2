package desktest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// Shot keeps a picture of the page, where DIALAI_ARTIFACTS says where to.
func (p *Page) Shot(name string) {
	p.Helper()
	p.shot(name)
}

func (p *Page) shot(name string) {
	p.Helper()
	dir := os.Getenv("DIALAI_ARTIFACTS")
	if dir == "" {
		return
	}
	dir = filepath.Join(dir, "desk")
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(p.Name()+"_"+name)+".png"), picture, 0o644)
	}
	if err != nil {
		p.Errorf("no picture of %s: %v", name, err)
	}
}

// Photo returns a picture of the page, as PNG.
func (p *Page) Photo() []byte {
	p.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	return picture
}
