package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/server/internal/params"
)

// Pictures of machines, as dialai graph draws them: of one that is kept here, or of a file that
// somebody is writing.

// mediaTypes are those of pictures.
var mediaTypes = map[string]string{"svg": "image/svg+xml", "mermaid": "text/vnd.mermaid", "dot": "text/vnd.graphviz", "text": "text/plain; charset=utf-8", "layout": "application/json"}

func (s *Server) registerGraph() {
	media := slices.Sorted(maps.Values(mediaTypes))
	add(s, operation{id: "draw-machine", method: http.MethodGet, path: "/v1/machines/{machine}/graph", summary: "Draw the newest definition of a machine", needs: mayRead, media: media, json: typeOf[graph.Drawing]()}, s.draw)
	add(s, operation{id: "draw-file", method: http.MethodPost, path: "/v1/graph", summary: "Draw a machine file that comes along; nothing is kept", needs: mayRead, media: media, json: typeOf[graph.Drawing]()}, s.drawFile)
}

type drawIn struct {
	params.Machine
	Digest string `query:"digest" doc:"the digest of a version; without it the newest"`
	Format string `query:"format" enum:"svg,mermaid,dot,text,layout" default:"svg" doc:"layout is the places of everything, for whoever draws it themselves"`
}

type drawOut struct {
	ContentType string `header:"Content-Type"`
	Policy      string `header:"Content-Security-Policy"`
	Body        []byte
}

func (s *Server) draw(ctx context.Context, p *Principal, in *drawIn) (*drawOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	v, err := s.of(ctx, p, in.Name, in.Digest)
	if err != nil {
		return nil, err
	}
	m, err := s.parse(v.Definition)
	if err != nil {
		return nil, err
	}
	return drawn(m, in.Format), nil
}

type drawFileIn struct{ Body api.Sketch }

func (s *Server) drawFile(ctx context.Context, _ *Principal, in *drawFileIn) (*drawOut, error) {
	if key := receiptOf(ctx); key != nil {
		key.idle = true
	}
	m, err := s.parseFile(in.Body.Name, []byte(in.Body.Text))
	if err != nil {
		return nil, err
	}
	return drawn(m, cmp.Or(in.Body.Format, "layout")), nil
}

func drawn(m *machine.Machine, format string) *drawOut {
	return &drawOut{mediaTypes[format], "default-src 'none'; style-src 'unsafe-inline'; sandbox", graph.Draw(m, graph.View{}, format)}
}
