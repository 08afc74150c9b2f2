package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// The JSON Schema library speaks of its own types where a word of a schema has a value of
// the wrong one, and of fractions where a number is out of its bounds. Here it is said in
// the words of JSON.

// What the value of a word of JSON Schema must be.
const (
	aNumber    = "a number"
	aWhole     = "a whole number"
	aText      = "a text"
	aFlag      = "true or false"
	aList      = "a list"
	someTexts  = "a list of texts"
	aSchema    = "a schema: an object, true or false"
	someOf     = "a list of schemas"
	named      = "an object of schemas"
	namedTexts = "an object of lists of texts"
	namedFlags = "an object whose values are true or false"
	namedBoth  = "an object of schemas and lists of texts"
	anything   = "anything"
)

// wordValues says what the values of the words of JSON Schema must be; those of "type" and
// "items" may be one of two.
var wordValues = func() map[string][]string {
	of := map[string][]string{"type": {aText, someTexts}, "items": {aSchema, someOf}}
	for value, words := range map[string]string{
		aNumber:    "multipleOf minimum maximum exclusiveMinimum exclusiveMaximum",
		aWhole:     "minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties",
		aText:      "$id $schema $ref $comment $anchor $dynamicAnchor $dynamicRef title description pattern contentEncoding contentMediaType format",
		aFlag:      "deprecated readOnly writeOnly uniqueItems",
		aList:      "enum examples",
		someTexts:  "required",
		aSchema:    "additionalItems contains unevaluatedItems additionalProperties propertyNames unevaluatedProperties not if then else contentSchema",
		someOf:     "prefixItems allOf anyOf oneOf",
		named:      "$defs definitions properties patternProperties dependentSchemas",
		namedTexts: "dependentRequired",
		namedFlags: "$vocabulary",
		namedBoth:  "dependencies",
		anything:   "const default",
	} {
		for word := range strings.FieldsSeq(words) {
			of[word] = append(of[word], value)
		}
	}
	return of
}()

// drafts3And4 says what is to be written for values that words had in drafts 3 and 4.
var drafts3And4 = map[string]string{
	"exclusiveMinimum true":  `: write the bound itself, without "minimum"`,
	"exclusiveMaximum true":  `: write the bound itself, without "maximum"`,
	"exclusiveMinimum false": ": leave it out",
	"exclusiveMaximum false": ": leave it out",
	"required true":          `: list the name in "required" of the object`,
	"required false":         ": leave it out",
}

// mistyped returns a *SchemaError about a word of a schema whose value is of a type that
// it cannot have, or err, which the library had to say of the schema.
func mistyped(source []byte, err error) error {
	var schema any
	if json.Unmarshal(source, &schema) != nil {
		return err
	}
	if found := mistypedIn("", schema); found != nil {
		return found
	}
	return err
}

// mistypedIn returns the first of the words of a schema, and of those below, that is
// mistyped; nil if there is none.
func mistypedIn(path string, schema any) *SchemaError {
	members, _ := schema.(map[string]any)
	for _, word := range slices.Sorted(maps.Keys(members)) {
		value := members[word]
		if value == nil || len(wordValues[word]) == 0 {
			continue // the library takes null for nothing
		}
		at := path + pointer("", word)
		found := mistypedValue(at, value, wordValues[word])
		if found == nil {
			continue
		}
		if found.Path == at {
			is := shownJSON(value)
			found.Problem = fmt.Sprintf("%q at #%s must be %s, is %s%s", word, path, strings.Join(wordValues[word], ", or "), is, drafts3And4[word+" "+is])
		}
		return found
	}
	return nil
}

// mistypedValue says what is wrong with a value that must be one of these.
func mistypedValue(at string, value any, want []string) (found *SchemaError) {
	for _, what := range want {
		if found = mistypedAs(at, value, what); found == nil {
			return nil
		}
		if found.Path != at {
			return found // of that type, and the fault lies below
		}
	}
	if found != nil {
		found.Problem = fmt.Sprintf("#%s must be %s, is %s", at, strings.Join(want, ", or "), shownJSON(value))
	}
	return found
}

// mistypedAs is mistypedValue for one of them; a fault at the value itself has no words yet.
func mistypedAs(at string, value any, want string) *SchemaError {
	if want == anything {
		return nil
	}
	switch v := value.(type) {
	case string:
		if want == aText {
			return nil
		}
	case bool:
		if want == aFlag || want == aSchema {
			return nil
		}
	case float64:
		if want == aNumber || want == aWhole && v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32 {
			return nil
		}
	case []any:
		if below, ok := map[string]string{aList: "", someTexts: aText, someOf: aSchema}[want]; ok {
			return mistypedItems(at, v, below)
		}
	case map[string]any:
		if want == aSchema {
			return mistypedIn(at, v)
		}
		if below, ok := map[string][]string{named: {aSchema}, namedTexts: {someTexts}, namedFlags: {aFlag}, namedBoth: {aSchema, someTexts}}[want]; ok {
			return mistypedMembers(at, v, below)
		}
	}
	return &SchemaError{Path: at}
}

func mistypedItems(at string, items []any, want string) *SchemaError {
	for i, item := range items {
		if want == "" || item == nil {
			continue
		}
		if found := mistypedValue(pointer(at, strconv.Itoa(i)), item, []string{want}); found != nil {
			return found
		}
	}
	return nil
}

func mistypedMembers(at string, members map[string]any, want []string) *SchemaError {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] == nil {
			continue
		}
		if found := mistypedValue(at+pointer("", name), members[name], want); found != nil {
			return found
		}
	}
	return nil
}

// shownJSON returns a value as messages show it: of what holds others only what it is.
func shownJSON(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case float64:
		return jsontext.FormatFloat(v)
	case string:
		return strconv.Quote(clip(v, 40))
	}
	return fmt.Sprint(value)
}

// outOfBounds is how the library says that a number is out of its bounds.
var outOfBounds = regexp.MustCompile(`\b((?:exclusive)?[mM](?:inimum|aximum)|multipleOf): (-?\d+)/(\d+) is (less than|greater than|less than or equal to|greater than or equal to|not a multiple of) (-?\d+\.\d{6})$`)

// plainViolation returns what the library says of a value, with numbers as they are
// written in JSON.
func plainViolation(err error) error {
	if err == nil {
		return nil
	}
	m := outOfBounds.FindStringSubmatchIndex(err.Error())
	if m == nil {
		return err
	}
	text := err.Error()
	n, ok := new(big.Rat).SetString(text[m[4]:m[7]])
	bound, wrong := strconv.ParseFloat(text[m[10]:m[11]], 64)
	if !ok || wrong != nil {
		return err
	}
	is, _ := n.Float64()
	return fmt.Errorf("%s: %s is %s %s", text[:m[3]], jsontext.FormatFloat(is), text[m[8]:m[9]], jsontext.FormatFloat(bound))
}
