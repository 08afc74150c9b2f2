package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
)

// TestUnmarshal: an error is about the text, and names the member.
func TestUnmarshal(t *testing.T) {
	type inner struct {
		Calls *int64       `json:"calls"`
		USD   *exact.Money `json:"usd"`
	}
	type outer struct {
		Input int64        `json:"input"`
		Name  string       `json:"name"`
		Value *float64     `json:"value"`
		On    bool         `json:"on"`
		List  []int32      `json:"list"`
		Meta  *inner       `json:"meta"`
		USD   *exact.Money `json:"usd"`
	}
	for text, want := range map[string]string{
		`{"input":"five"}`:         `input is a text, not a whole number`,
		`{"input":1.5}`:            `input is 1.5, not a whole number`,
		`{"input":1e400}`:          `input is 1e400, not a whole number`,
		`{"name":5}`:               `name is a number, not a text`,
		`{"value":[]}`:             `value is a list, not a number`,
		`{"on":"yes"}`:             `on is a text, not true or false`,
		`{"list":{}}`:              `list is an object, not a list`,
		`{"list":[1,true]}`:        `list is true or false, not a whole number`,
		`{"meta":5}`:               `meta is a number, not an object`,
		`{"meta":{"calls":"x"}}`:   `meta.calls is a text, not a whole number`,
		`{"usd":"x"}`:              `usd: "x" is not a number of dollars`,
		`{"input":1,"usd":"x"}`:    `usd: "x" is not a number of dollars`,
		`{"meta":{"usd":[]}}`:      `meta: [] is not a number of dollars`,
		`[1]`:                      `it is a list, not an object`,
		`{"input":1`:               `unexpected end of JSON input`,
		`{"input":7,"unknown":[]}`: ``,
	} {
		var v outer
		err := jsontext.Unmarshal([]byte(text), &v)
		if got := textOf(err); got != want || strings.Contains(got, "Go ") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		var plain outer
		if (json.Unmarshal([]byte(text), &plain) == nil) != (err == nil) {
			t.Errorf("%s: json.Unmarshal thinks otherwise", text)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
