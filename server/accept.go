package server

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// acceptable refuses, before anything is done, callers who take nothing that their operation
// answers.
func (s *Server) acceptable(c huma.Context, next func(huma.Context)) {
	offered := []string{"application/json", "application/problem+json"}
	for status, r := range c.Operation().Responses {
		for media := range r.Content {
			if status < "3" {
				offered = append(offered, media)
			}
		}
	}
	if accept := c.Header("Accept"); !accepts(accept, offered) {
		_ = huma.WriteErr(s.api, c, http.StatusNotAcceptable, "nothing of what is answered here is acceptable: Accept is "+strconv.Quote(cut(accept))) // whoever has gone does not read it
		return
	}
	next(c)
}

// accepts reports whether a header Accept takes one of the media types that are offered. For each
// of them the range counts that names it most closely. A header without a range that can be read
// takes all.
func accepts(header string, offered []string) bool {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || !strings.Contains(media, "/") {
			continue
		}
		weight := 1.0
		if q, given := params["q"]; given {
			weight, _ = strconv.ParseFloat(q, 64) // what is no number is no weight
		}
		weights[media] = max(weights[media], weight)
	}
	if len(weights) == 0 {
		return true
	}
	for _, media := range offered {
		kind, _, _ := strings.Cut(media, "/")
		for _, named := range []string{media, kind + "/*", "*/*"} {
			if weight, ok := weights[named]; ok {
				if weight > 0 {
					return true
				}
				break
			}
		}
	}
	return false
}
