package graph

import (
	_ "embed" // the style sheet
	"strings"
)

// The fonts of the SVG.
var (
	titleFont = font{20, true}
	textFont  = font{13, false}
	nameFont  = font{14, true}
	labelFont = font{12, false}
	smallFont = font{11, false}
	pillFont  = font{10, true}
)

const fontFamily = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

// A palette gives the colours of the sheet their values, name by name.
type palette []string

var light = palette{
	"$card", "#ffffff", "$border", "#e2e8f0", "$panel", "#f8fafc", "$track", "#e2e8f0",
	"$text", "#0f172a", "$muted", "#5b6b82", "$line", "#8a99ae", "$faint", "#c3cedb",
	"$node", "#f8fafc", "$stroke", "#94a3b8",
	"$blue", "#4f46e5", "$softblue", "#eef2ff", "$haloblue", "#c7d2fe",
	"$green", "#15803d", "$softgreen", "#f0fdf4", "$halogreen", "#bbf7d0",
	"$amber", "#b45309", "$softamber", "#fffbeb", "$haloamber", "#fde68a",
	"$red", "#be123c", "$softred", "#fff1f2", "$halored", "#fecdd3", "$on", "#ffffff",
}

var dark = palette{
	"$card", "#0f172a", "$border", "#27344a", "$panel", "#162033", "$track", "#2b3a52",
	"$text", "#e6edf6", "$muted", "#9aabc2", "$line", "#71829b", "$faint", "#3b4a62",
	"$node", "#1b273c", "$stroke", "#5c6f8a",
	"$blue", "#a5b4fc", "$softblue", "#272b59", "$haloblue", "#3d4391",
	"$green", "#6ee7a0", "$softgreen", "#12352a", "$halogreen", "#1d5a40",
	"$amber", "#fbbf4d", "$softamber", "#3a2a10", "$haloamber", "#6d4a12",
	"$red", "#fda4b4", "$softred", "#3f1a29", "$halored", "#7a2740", "$on", "#0f172a",
}

// sheet is the style sheet of the SVG. All its classes begin with dg-, so that
// a page may contain the SVG without being changed by it.
//
//go:embed sheet.css
var sheet string

// tones gives the current state and the chip the colour of the status.
const tones = `.dg-$c.dg-now .dg-box{fill:$$c;stroke:$$c}
.dg-$c .dg-halo{stroke:$halo$c}
.dg-$c .dg-chip{fill:$soft$c}
.dg-$c .dg-chiptext{fill:$$c}
`

// noteRules are for drawings that have notes.
const noteRules = `.dg-note{fill:$muted;font-size:11px;text-anchor:middle}
.dg-now .dg-note{fill:$on}
`

// style returns the style element of the SVG, for light and dark mode.
func style(noted bool) string {
	rules := sheet
	if noted {
		rules += noteRules
	}
	for _, colour := range []string{"blue", "green", "amber", "red"} {
		rules += strings.ReplaceAll(tones, "$c", colour)
	}
	return "<style>" + strings.NewReplacer(light...).Replace(rules) +
		"@media (prefers-color-scheme:dark){" + strings.NewReplacer(dark...).Replace(rules) + "}\n</style>\n"
}

// A tone is how a status is shown: the class of its colour and its words.
type tone struct{ class, words string }

func toneOf(status string) tone {
	switch status {
	case "running":
		return tone{"dg-blue", "running"}
	case "needs_human":
		return tone{"dg-amber", "needs a human"}
	case "completed":
		return tone{"dg-green", "completed"}
	case "stopped":
		return tone{"dg-red", "stopped by a guard"}
	case "failed":
		return tone{"dg-red", "failed"}
	}
	return tone{"dg-blue", labelFont.cut(flat(status), 160)}
}

// The icons, by the names that a [Drawing] has for them.
const (
	personIcon = "person"
	groupIcon  = "group"
	robotIcon  = "robot"
	lockIcon   = "lock"
	signIcon   = "sign"
	checkIcon  = "check"
	arrowIcon  = "arrow"
)

// icons are paths in a box of 14 by 14.
var icons = map[string]string{
	personIcon: "M7 6.4a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM1.8 13c.5-3 2.5-4.4 5.2-4.4s4.7 1.4 5.2 4.4",
	groupIcon:  "M5 6.4a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM.8 12.8c.3-2.8 1.9-4.2 4.2-4.2s3.9 1.4 4.2 4.2M9.3 1.9a2.4 2.4 0 0 1 0 4.2M10.8 9c1.4.5 2.2 1.7 2.4 3.8",
	robotIcon:  "M3.5 4.5h7a2 2 0 0 1 2 2v4.5a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2V6.5a2 2 0 0 1 2-2zM7 4.5V1.5M4.9 8.2v1.2M9.1 8.2v1.2",
	lockIcon:   "M3 6.5h8v6.5H3zM4.7 6.5V4.2a2.3 2.3 0 0 1 4.6 0V6.5",
	signIcon:   "M2 12.8h10M3 9.8v-2L9.2 1.6l2 2L5 9.8z",
	checkIcon:  "M2.5 7.5l3.2 3.2L11.8 3.8",
	arrowIcon:  "M2 7h10M8.5 3.5L12 7l-3.5 3.5",
}
