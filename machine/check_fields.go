package machine

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
)

// This is the only file that knows the validator: it holds the value of each
// field to the rule in its struct tag and turns what the validator says into
// problems with a place, a code and a sentence.

// rules is built once, when the first machine is checked.
var rules = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	for tag, rule := range map[string]validator.Func{
		"name":     func(f validator.FieldLevel) bool { return badName(f.Field().String()) == "" },
		"unit":     func(f validator.FieldLevel) bool { return f.Field().Interface().(Threshold).inUnit() },
		"weburl":   func(f validator.FieldLevel) bool { return BadURL("", f.Field().String()) == "" },
		"maxbytes": maxBytes,
	} {
		if err := v.RegisterValidation(tag, rule); err != nil {
			panic(err) // a broken invariant: the tags above are constants
		}
	}
	return v
})

func maxBytes(f validator.FieldLevel) bool {
	var limit int
	_, err := fmt.Sscan(f.Param(), &limit)
	return err == nil && f.Field().Len() <= limit
}

// BadURL says what is wrong with the address of a service that is asked over HTTP,
// such as: url "ftp://a" is not an http or https address. It returns "" if nothing
// is. field is the name of the value. What may be a password is not shown. The
// address is not resolved.
func BadURL(field, address string) string {
	wrong := ""
	u, err := url.Parse(address)
	switch {
	case err != nil:
		wrong = "is not a URL"
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		wrong = "is not an http or https address"
	case u.User != nil:
		wrong = "contains a user name or password"
	case !goodPort(u.Port()):
		wrong = "has a port that is not from 1 to 65535"
	default:
		return ""
	}
	return fmt.Sprintf("%s %q %s", field, clip(withoutUser(address), 128), wrong)
}

// withoutUser masks what stands before the host, also in what is no address.
func withoutUser(address string) string {
	authority := 0
	if i := strings.Index(address, "//"); i >= 0 {
		authority = i + 2
	}
	end := strings.LastIndexByte(address, '@')
	if end < authority {
		return address
	}
	return address[:authority] + "…" + address[end:]
}

// URLHint says what to write in place of an address that [BadURL]
// refuses, such as example.
func URLHint(address, example string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return "write the whole address, such as " + example
	}
	u.User = nil
	return fmt.Sprintf(`write %q; where the service asks for a password, name the variable that holds its token (webhookTokenName, or a classifier's token_name)`, clip(u.String(), 128))
}

func goodPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// checkFields holds every field to the rule in its tag.
func (c *checker) checkFields() {
	var found validator.ValidationErrors
	if err := rules().Struct(c.def); !errors.As(err, &found) {
		return
	}
	for _, f := range found {
		path, onName := c.fieldPath(f)
		if !onName && c.reported(path, f) {
			continue
		}
		c.report(path, onName, fieldProblem(f))
	}
}

// reported reports whether what is wrong with a field is known already: it, or
// the object it belongs to, could not be read, or it is required and missing.
func (c *checker) reported(path string, f validator.FieldError) bool {
	owner := path[:strings.LastIndexByte(path, '/')]
	return c.unread[path] || c.unread[owner] || path == "/machineName" && f.Value() == ""
}

// fieldPath turns "Definition.states[2].transitions[0].name" into a JSON
// pointer, in which states and transitions have names instead of indices.
func (c *checker) fieldPath(f validator.FieldError) (path string, onName bool) {
	parts := strings.Split(f.Namespace(), ".")[1:]
	var state *StateDefinition
	for _, part := range parts {
		name, rest, indexed := strings.Cut(part, "[")
		if name == "name" && state != nil {
			return path, true
		}
		path = pointer(path, name)
		if !indexed {
			continue
		}
		var i int
		fmt.Sscanf(rest, "%d", &i)
		switch name {
		case "states":
			state = &c.def.States[i]
			path = pointer(path, state.Name)
		case "transitions":
			path = pointer(path, state.Transitions[i].Name)
		default:
			path = pointer(path, fmt.Sprint(i))
		}
	}
	return path, false
}

// fieldProblem puts a broken rule into words.
func fieldProblem(f validator.FieldError) Problem {
	name, value := f.Field(), fmt.Sprint(f.Value())
	quoted := fmt.Sprintf("%q", clip(value, 128))
	switch f.Tag() {
	case "name":
		return nameProblem(f, value)
	case "unit":
		return Problem{Code: "bad-threshold", Message: fmt.Sprintf("%s is %v, not a number from 0 to 1", name, f.Value()), Hint: thresholdHint(f.Value().(Threshold).Given)}
	case "weburl":
		return Problem{Code: "bad-url", Message: BadURL(name, value), Hint: URLHint(value, "https://example.com/propose")}
	case "oneof":
		return oneOfProblem(f, quoted)
	case "maxbytes":
		return Problem{Code: "too-large", Message: fmt.Sprintf("%s is larger than %s bytes", name, f.Param())}
	case "max":
		unit := "characters"
		if f.Kind() == reflect.Slice {
			unit = "entries"
		}
		return Problem{Code: "too-large", Message: fmt.Sprintf("%s has more than %s %s", name, f.Param(), unit)}
	}
	limit := map[string]string{"gt": "above", "gte": "at least", "lt": "below", "lte": "at most"}[f.Tag()]
	return Problem{Code: "out-of-range", Message: fmt.Sprintf("%s is %s, it must be %s %s", name, value, limit, f.Param())}
}

func nameProblem(f validator.FieldError, value string) Problem {
	what := map[string]string{"machineName": "machineName", "specialistId": "specialistId"}[f.Field()]
	if what == "" {
		what = "the name"
	}
	code := "bad-name"
	if value == "" && f.Field() == "specialistId" {
		code = "duplicate-id" // one code for every unusable id
	}
	return Problem{Code: code, Message: fmt.Sprintf("%s %q %s", what, clip(value, maxNameRunes), badName(value)), Hint: "choose a short name of printable characters"}
}

func itMayBe(choices []string) string { return "it may be " + strings.Join(choices, ", ") }

// choicesOf returns what the rule in the tag of a field lets it be: owner points to a struct,
// name is that of the field in JSON.
func choicesOf(owner any, name string) []string {
	t := reflect.TypeOf(owner).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		if inJSON, _, _ := strings.Cut(f.Tag.Get("json"), ","); inJSON != name {
			continue
		}
		for rule := range strings.SplitSeq(f.Tag.Get("validate"), ",") {
			if list, is := strings.CutPrefix(rule, "oneof="); is {
				return strings.Fields(list)
			}
		}
	}
	panic("machine: no rule says what " + name + " may be")
}

func oneOfProblem(f validator.FieldError, quoted string) Problem {
	choices := strings.Fields(f.Param())
	code := map[string]string{"role": "bad-role"}[f.Field()]
	if code == "" {
		code = "bad-value"
	}
	hint := didYouMean(fmt.Sprint(f.Value()), choices)
	if hint == "" {
		hint = itMayBe(choices)
	}
	return Problem{Code: code, Message: fmt.Sprintf("%s is %s", f.Field(), quoted), Hint: hint}
}
