package jsontext

import (
	"bytes"
	"encoding/json"
)

// Marshal returns v as [json.Marshal] does, without the escapes that HTML wants.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
