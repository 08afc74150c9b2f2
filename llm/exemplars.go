package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/specialist"
)

// Bounds of the examples that a model is shown.
const (
	maxExemplars     = 8
	maxExemplarBytes = 16 << 10
)

// examples returns earlier human decisions as text: the newest of each chosen
// transition, then the newest, as many as fit, told oldest first.
func examples(all []specialist.Exemplar) string {
	var texts [maxExemplars]string
	var chosen []int
	size := 0
	for _, i := range newestFirst(all) {
		text := example(&all[i])
		if size+len(text) > maxExemplarBytes {
			continue
		}
		texts[len(chosen)], chosen, size = text, append(chosen, i), size+len(text)
		if len(chosen) == maxExemplars {
			break
		}
	}
	if len(chosen) == 0 {
		return ""
	}
	byAge := make([]int, len(chosen)) // places in chosen
	for i := range byAge {
		byAge[i] = i
	}
	slices.SortFunc(byAge, func(a, b int) int { return chosen[a] - chosen[b] })
	var b bytes.Buffer
	for n, i := range byAge {
		if n > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(texts[i])
	}
	return b.String()
}

// newestFirst returns the indices of exemplars in the order in which they deserve
// to be shown. Only as many as could be shown are put first with care.
func newestFirst(all []specialist.Exemplar) []int {
	var first, rest []int
	seen := map[string]bool{}
	for i := range slices.Backward(all) {
		if name := all[i].HumanTransitionName; !seen[name] {
			seen[name] = true
			first = append(first, i)
		} else if len(rest) < 2*maxExemplars {
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// example returns one decision as text.
func example(e *specialist.Exemplar) string {
	var was struct {
		State       string          `json:"currentState"`
		Prompt      string          `json:"prompt"`
		Transitions json.RawMessage `json:"transitions"`
		Meta        json.RawMessage `json:"metaJson"`
		Data        json.RawMessage `json:"data"` // of a machine that keeps any
	}
	_ = json.Unmarshal(e.Context, &was) // of a context that cannot be read, what is left is told
	b := fmt.Appendf(nil, "State: %s\n", was.State)
	if was.Prompt != "" {
		b = fmt.Appendf(b, "Task: %s\n", was.Prompt)
	}
	if about := cmp.Or(string(was.Data), string(was.Meta)); about != "" {
		b = fmt.Appendf(b, "Case: %s\n", about)
	}
	b = append(b, "Options: "...)
	for i, name := range keys(was.Transitions) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, "%q", name)
	}
	b = fmt.Appendf(b, "\nA human chose: %q, which led to %q", e.HumanTransitionName, e.HumanToState)
	if e.Reasoning != "" {
		b = append(append(b, "\nbecause: "...), e.Reasoning...)
	}
	return string(b)
}

// keys returns the names of an object's members, in their order.
func keys(object json.RawMessage) (names []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return names
		}
		names = append(names, name.(string))
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return names
		}
	}
	return names
}
