package desk_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk"
)

// policy is what section 6 of the desk's promise has a browser keep to, word for word.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html desk-worker"

// asked is the answer of the handler to a request.
func asked(method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	desk.Handler().ServeHTTP(w, r)
	return w.Result()
}

func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// page is the page as it was built.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asset is a file that the page names.
func asset(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`/desk/assets/shell-[^"]+\.js`).FindString(page(t)) // what begins it is too small to be packed
	if found == "" {
		t.Fatal("the page names no script")
	}
	return found
}

// TestPage: every path below /desk/ is the page, asked for anew each time; whoever has it is told so.
func TestPage(t *testing.T) {
	for _, path := range []string{"/desk/", "/desk/inbox", "/desk/q/x.1", "/desk/sessions/%2e%2e", "/desk/q/<script>"} {
		r := asked("GET", path)
		if r.StatusCode != 200 || textOf(t, r) != page(t) || r.Header.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s is %d, %v", path, r.StatusCode, r.Header)
		}
	}
	tag := asked("GET", "/desk/").Header.Get("ETag")
	if r := asked("GET", "/desk/q/y", "If-None-Match", tag); tag == "" || r.StatusCode != 304 || textOf(t, r) != "" {
		t.Errorf("who has the page is answered %d (%s)", r.StatusCode, tag)
	}
	if r := asked("GET", "/desk/", "If-None-Match", `"another"`); r.StatusCode != 200 {
		t.Errorf("who has another page is answered %d", r.StatusCode)
	}
	if r := asked("HEAD", "/desk/"); r.StatusCode != 200 || textOf(t, r) != "" {
		t.Errorf("HEAD is answered %d", r.StatusCode)
	}
}

// TestAsset: a file holds for a year, and one that there is not is not the page.
func TestAsset(t *testing.T) {
	r := asked("GET", asset(t))
	if r.StatusCode != 200 || r.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("%s is %d, %v", asset(t), r.StatusCode, r.Header)
	}
	for _, path := range []string{"/desk/assets/", "/desk/assets/x.js", "/desk/assets/../build.json", "/desk/assets/../index.html", asset(t) + "/"} {
		if r := asked("GET", path); r.StatusCode != 404 || strings.Contains(textOf(t, r), "<html") {
			t.Errorf("%s is %d", path, r.StatusCode)
		}
	}
}

// TestGzip: who takes gzip is sent it, the same text; who does not is not.
func TestGzip(t *testing.T) {
	plain := asked("GET", asset(t))
	text := textOf(t, plain)
	if e := plain.Header.Get("Content-Encoding"); e != "" {
		t.Errorf("unasked it is %s", e)
	}
	for _, header := range []string{"gzip", "br, gzip;q=0.5", "GZIP"} {
		r := asked("GET", asset(t), "Accept-Encoding", header)
		if r.Header.Get("Content-Encoding") != "gzip" || textOf(t, r) != text || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q is answered %v", header, r.Header)
		}
	}
	for _, header := range []string{"br", "gzip;q=0", "gzip; q=0.0", "identity"} {
		if e := asked("GET", asset(t), "Accept-Encoding", header).Header.Get("Content-Encoding"); e != "" {
			t.Errorf("%q is answered in %s", header, e)
		}
	}
}

// TestHeaders: the page may load what is its own, run no text, be in no frame and say nothing of
// where somebody comes from; so may its files.
func TestHeaders(t *testing.T) {
	for _, path := range []string{"/desk/", asset(t), "/desk/assets/none"} {
		h := asked("GET", path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy": "camera=(), microphone=(), geolocation=()", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	if bytes.Contains([]byte(page(t)), []byte("<script>")) || strings.Contains(page(t), "style=") {
		t.Error("the page has a script or a style of its own, which its policy refuses")
	}
}
