// Package machines holds the sample machine files, embedded, in the order in
// which they are best read. All of them are run in tests.
package machines

import (
	"embed"
	"strings"
)

//go:embed *.json *.yaml
var files embed.FS

// A Sample is one machine file to start from.
type Sample struct {
	Name  string // without its extension
	File  string
	About string // one line
}

// Samples lists them.
var samples = []Sample{
	{"document-review", "document-review.json", "one proposer, one arbiter: the smallest machine"},
	{"support-triage", "support-triage.yaml", "rules route tickets, a majority decides, a human settles the rest"},
	{"expense-approval", "expense-approval.yaml", "above a limit finance approves, two of them, or a timer goes on"},
	{"content-moderation", "content-moderation.json", "a panel of three votes, and an appeal goes to a human"},
	{"data-labelling", "data-labelling.json", "annotators earn trust by agreeing with a human"},
	{"refund-desk", "refund-desk.yaml", "humans decide until the record shows who can be left alone"},
	{"code-review", "code-review.json", "two webhooks review a change, a maintainer breaks ties"},
	{"incident-response", "incident-response.yaml", "a loop with guards and timers: bounded, paged, settled"},
	{"release-pipeline", "release-pipeline.yaml", "ten states from commit to production"},
	{"runaway-loop", "runaway-loop.yaml", "an agent that repeats itself is warned, then stopped"},
	{"shared-budget", "shared-budget.yaml", "three paid reviewers asked at once share five cents"},
	{"tool-approval", "tool-approval.yaml", "may an agent call this tool: for dialai proxy --escalate"},
	{"permission", "permission.yaml", "may a coding agent do this: for dialai permit"},
	{"undertaking", "undertaking.json", "a manager, workers and verifiers do long work: dialai undertake"},
	{"undertaking-solo", "undertaking-solo.json", "one agent after the other does long work: dialai undertake --solo"},
	{"claims-panel", "claims-panel.yaml", "models of three providers vote, and a human settles the rest"},
	{"contract-intake", "contract-intake.yaml", "models take down terms and check them, legal and finance sign"},
	{"reply-loop", "reply-loop.yaml", "a model writes, another sends back: a loop with an end"},
	{"custom-arbiter", "custom-arbiter.json", "an arbiter written in Go, see examples/custom-arbiter"},
	{"webhook-arbiter", "webhook-arbiter.json", "an arbiter behind HTTP, see examples/webhook-arbiter"},
}

// Starter is the commented file that dialai init writes.
const Starter = "starter.yaml"

// List returns the samples. The caller may change what it gets.
func List() []Sample { return append([]Sample(nil), samples...) }

// Read returns the text of a sample by its name or file name; ok is false if
// there is none.
func Read(name string) (file string, text []byte, ok bool) {
	for _, s := range samples {
		if s.Name == name || s.File == name {
			name = s.File
		}
	}
	if strings.Contains(name, "/") {
		return "", nil, false
	}
	text, err := files.ReadFile(name)
	return name, text, err == nil
}
