package cli

import (
	"encoding/json"

	"github.com/dialai/dialai/guard"
)

// redact returns a JSON value in which texts that hold what looks like a secret or
// personal data are masked, and whether there were any. Names of members stay, and so
// do the bytes of a value in which nothing was found.
func redact(data json.RawMessage) (masked json.RawMessage, found bool) {
	done := 0
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := stringEnd(data, i)
		var text string
		if isName := end < len(data) && data[end] == ':'; !isName && json.Unmarshal(data[i:end], &text) == nil {
			if clean := guard.Redact(text); clean != text {
				quoted, _ := json.Marshal(clean)
				masked, found = append(append(masked, data[done:i]...), quoted...), true
				done = end
			}
		}
		i = end - 1
	}
	if !found {
		return data, false
	}
	return append(masked, data[done:]...), true
}

// stringEnd returns where the string of compact JSON ends that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(data))
}
