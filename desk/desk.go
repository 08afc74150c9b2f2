// Package desk is the page on which people rule: the built files of desk/web, which the program
// carries with it.
//
// The page is a client of the public API like any other program, and gets nothing that it could not
// have. Its files are the same for everybody and hold no data, so nobody has to say who they are to
// have them; what they show is asked for with a sign-in.
package desk

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// Path is below which the page is.
const Path = "/desk/"

// policy lets the page load what is its own, run no text as script, and be in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html desk-worker"

// Handler serves the page at every path below [Path], and its files at those below assets/: the page
// is asked for anew each time, a file holds for ever, since another one has another name. It may be
// called concurrently.
func Handler() http.Handler { return load() }

var load = sync.OnceValue(func() http.Handler {
	h := &handler{files: map[string]*file{}}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := dist.ReadFile(name)
		h.files[strings.TrimPrefix(name, "dist/")] = &file{text: text, media: mime.TypeByExtension(path.Ext(name)), tag: tagOf(text)}
		return err
	})
	if err != nil {
		panic("desk: " + err.Error()) // never: the files are part of the program
	}
	return h
})

// A file is one that is served.
type file struct {
	text  []byte
	media string
	tag   string

	once   sync.Once
	zipped []byte
}

func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// gzipped is the file as gzip has it; how small that gets differs between versions, so it is made
// here, once.
func (f *file) gzipped() []byte {
	f.once.Do(func() {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
		_, _ = w.Write(f.text)                                // into memory
		_ = w.Close()
		f.zipped = b.Bytes()
	})
	return f.zipped
}

type handler struct{ files map[string]*file }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, asset := strings.CutPrefix(r.URL.Path, Path+"assets/")
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Content-Type-Options", "nosniff")
	f, keep := h.files["index.html"], "no-cache"
	if asset {
		if f = h.files["assets/"+name]; f == nil {
			http.Error(w, "no such file: the page is of another version, load it again", http.StatusNotFound)
			return
		}
		keep = "public, max-age=31536000, immutable"
	}
	head.Set("Cache-Control", keep)
	head.Set("Content-Type", f.media)
	head.Set("ETag", f.tag)
	head.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := f.text
	if acceptsGzip(r.Header.Get("Accept-Encoding")) && len(f.gzipped()) < len(text) {
		text = f.gzipped()
		head.Set("Content-Encoding", "gzip")
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // whoever has gone does not read it
	}
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		text, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		q, err := strconv.ParseFloat(text, 64)
		return !given || err == nil && q > 0
	}
	return false
}
