package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Unmarshal is [json.Unmarshal] for what people have written: where a value cannot be
// what it stands for, the error names the member, what it is and what it has to be, in
// the words of JSON and not of Go.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "it"
		if wrong.Field != "" {
			what = wrong.Field
		}
		return fmt.Errorf("%s is %s, not %s", what, found(wrong.Value), wanted(wrong.Type))
	}
	if err != nil && json.Valid(data) {
		return memberOf(data, v, err)
	}
	return err
}

// memberOf says of which member an error is that a type of its own has returned.
func memberOf(data []byte, v any, err error) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return err
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		one, _ := json.Marshal(map[string]json.RawMessage{name: members[name]}) // what was decoded can be written
		if e := json.Unmarshal(one, reflect.New(reflect.TypeOf(v).Elem()).Interface()); e != nil {
			return fmt.Errorf("%s: %w", name, e)
		}
	}
	return err
}

// found says what there is instead, from how encoding/json tells of it.
func found(value string) string {
	if number, ok := strings.CutPrefix(value, "number "); ok {
		return number
	}
	switch value {
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	case "array":
		return "a list"
	}
	return article(value)
}

// wanted names what a value of a type is in JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "that"
}

func article(noun string) string {
	if strings.HasPrefix(noun, "o") {
		return "an " + noun
	}
	return "a " + noun
}
