package desktest

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// A chromium is one browser, which the tests of a package share; each page has a profile of its own.
type chromium struct {
	mu  sync.Mutex
	ctx context.Context
	dir string
	off []context.CancelFunc
}

var one chromium

// Program returns where Chromium is. Without it the test is skipped; in CI it fails.
func Program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("DIALAI_CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); name != "" && err == nil {
			return at
		}
	}
	if os.Getenv("CI") != "" || os.Getenv("DIALAI_REQUIRE_BROWSER") != "" {
		t.Fatal("CI tries a real browser: .ci/browser installs Chromium")
	}
	t.Skip("no Chromium: apt-get install chromium-headless-shell or chromium, as your system has it, or set DIALAI_CHROMIUM")
	return ""
}

// begin starts the browser, unless it runs.
func (c *chromium) begin(t testing.TB) context.Context {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		return c.ctx
	}
	at := Program(t)
	dir, err := os.MkdirTemp("", "dialai-desk")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(at), chromedp.UserDataDir(dir), chromedp.Flag("no-proxy-server", true), chromedp.Flag("lang", "en-US"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, close := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	c.ctx, c.dir, c.off = ctx, dir, []context.CancelFunc{close, end}
	return ctx
}

// end ends the browser, if it runs.
func (c *chromium) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, off := range c.off {
		off()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // what is left lies where temporary files do
	}
}
