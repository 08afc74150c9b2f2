package serving

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dialai/dialai/cli/internal/render"
)

// A ServingDriver is where a driver beside the server's own has the sessions of a tenant.
type ServingDriver struct {
	Driver string `json:"driver"`
	Tenant string `json:"tenant,omitempty"` // "" where there is one
	About  any    `json:"about"`            // as the driver says it

	text string
}

// driversWithin is how long drivers have to say where they have their sessions, for all tenants: nobody is answered before.
const driversWithin = 2 * time.Second

// drivers asks all drivers of all tenants.
func (a *app) drivers(ctx context.Context, h *assembled) (list []ServingDriver) {
	ctx, cancel := context.WithTimeout(ctx, driversWithin)
	defer cancel()
	for _, b := range a.Beside {
		if b.Serving == nil || a.Flags.Quiet {
			continue
		}
		for i, e := range h.engines {
			name, text, about := b.Serving(ctx, e, h.names[i])
			if text == "" {
				continue
			}
			d := ServingDriver{Driver: name, About: about, text: text}
			if len(h.engines) > 1 {
				d.Tenant = h.names[i]
			}
			list = append(list, d)
		}
	}
	return list
}

// print writes what a driver says, by its name.
func (d *ServingDriver) print(out io.Writer) {
	of := ""
	if d.Tenant != "" {
		of = " (tenant " + d.Tenant + ")"
	}
	first, more, _ := strings.Cut(d.text, "\n")
	fmt.Fprintf(out, "  %s%s %s\n", d.Driver, of, render.Clean(first))
	for line := range strings.Lines(more) {
		fmt.Fprintf(out, "    %s\n", render.Clean(strings.TrimSpace(line)))
	}
}
