// Package docs has the guides that programs are shown.
package docs

import _ "embed" // for the guide below

// MachineFile is the guide to machine files, docs/machine-file.md.
//
//go:embed machine-file.md
var MachineFile string
