package permit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
)

// shorten returns JSON of at most limit bytes: as it is, or with long texts cut, which say how
// long they were, as short as it takes.
func shorten(input json.RawMessage, limit int) (json.RawMessage, error) {
	if len(input) == 0 {
		return json.RawMessage("null"), nil
	}
	if len(input) <= limit {
		return input, nil
	}
	var v any
	numbers := json.NewDecoder(bytes.NewReader(input))
	numbers.UseNumber() // which are shown as they are
	if err := numbers.Decode(&v); err != nil {
		return nil, err
	}
	for most := limit / 2; most >= 64; most /= 2 {
		if cut, err := jsontext.Marshal(cutTexts(v, most)); err != nil || len(cut) <= limit {
			return cut, err
		}
	}
	return jsontext.Marshal(fmt.Sprintf("an input of %d bytes, which is too large to be shown", len(input)))
}

// cutTexts returns v with each text of more than most bytes cut.
func cutTexts(v any, most int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= most {
			return v
		}
		end := most
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return fmt.Sprintf("(only the beginning of %d bytes) %s", len(v), v[:end]) // said first, where it is seen
	case []any:
		cut := make([]any, len(v))
		for i, e := range v {
			cut[i] = cutTexts(e, most)
		}
		return cut
	case map[string]any:
		cut := make(map[string]any, len(v))
		for name, e := range v {
			cut[name] = cutTexts(e, most)
		}
		return cut
	}
	return v
}
