package api

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/internal/packs"
)

// redact returns a JSON value, compact as it is stored, in which the strings, numbers
// and names of members that hold what looks like a secret or personal data are masked,
// and whether there were any. A value is looked at together with the name that it has:
// that says that it is a password. The bytes of a value in which nothing was found stay.
func redact(data json.RawMessage) (masked json.RawMessage, found bool) {
	done, name := 0, ""
	for i := 0; i < len(data); i++ {
		end := scalarEnd(data, i)
		if end == i {
			if data[i] == '{' || data[i] == '}' {
				name = ""
			}
			continue
		}
		text, isName := textOf(data[i:end]), end < len(data) && data[end] == ':'
		if isName {
			name = ""
		}
		if clean := redactNamed(name, text); clean != text {
			quoted, _ := json.Marshal(clean)
			masked, found = append(append(masked, data[done:i]...), quoted...), true
			done = end
		}
		if isName {
			name = text
		}
		i = end - 1
	}
	if !found {
		return data, false
	}
	return append(masked, data[done:]...), true
}

// redactNamed masks what is in a text that is the value of the member of that name, or
// in a list that is; the name is "" where there is none.
func redactNamed(name, text string) string {
	label := name + `": "`
	if clean, same := strings.CutPrefix(packs.Redact(label+text), label); name != "" && same && clean != text {
		return clean
	}
	return packs.Redact(text)
}

// scalarEnd returns the end of the string or the number of compact JSON that begins at
// i, i if none does.
func scalarEnd(data []byte, i int) int {
	if data[i] == '"' {
		return stringEnd(data, i)
	}
	if data[i] != '-' && (data[i] < '0' || data[i] > '9') {
		return i
	}
	for i < len(data) && strings.IndexByte(",:]}", data[i]) < 0 {
		i++
	}
	return i
}

// textOf returns what a string says, or the digits of a number.
func textOf(scalar []byte) (text string) {
	if scalar[0] != '"' || json.Unmarshal(scalar, &text) != nil {
		return string(scalar)
	}
	return text
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
