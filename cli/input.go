package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// What a session is started with, its metaJson: an object that --input names, and members
// that --meta adds to it or writes over it. A member is read by the type that the machine's
// input gives it, so that 42 stays a text where a text is asked for; where that says
// nothing, it is JSON if it parses, else a text. Whether all of it is what the machine wants
// is for the engine to say, which says so of every session.

// inputFlags are those of the commands that start sessions.
type inputFlags struct {
	input string
	meta  []string
}

func (f *inputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.input, "input", "", "what the session is about, its metaJson: an `object`, JSON or YAML, in a file, on stdin (-), or as it is ('{…}')")
	cmd.Flags().StringArrayVar(&f.meta, "meta", nil, "a member of the metaJson, `key=value`, read by its type in the machine's input, else as JSON if it parses, else as text; key:=value is JSON (may be repeated)")
}

// read returns the metaJson that the flags give a session of m, nil if they give none; m
// may be nil.
func (f *inputFlags) read(a *app, m *machine.Machine) (json.RawMessage, error) {
	if f.input == "" && len(f.meta) == 0 {
		return nil, nil
	}
	var whole jsontext.Object
	if f.input != "" {
		text, err := a.readInput(f.input)
		if err != nil {
			return nil, err
		}
		whole = jsontext.ReadObject(text)
	}
	var s payloads.Schema
	if m != nil && m.Input() != nil {
		_ = json.Unmarshal([]byte(m.Input().String()), &s) // true and false say nothing of members
	}
	members, err := metaMembers(&s, f.meta)
	if err != nil {
		return nil, err
	}
	whole = whole.With(members)
	a.warnMembers(&s, whole, m)
	return whole.JSON(), nil
}

// warnMembers warns of members that the machine does not declare, where that takes them, if
// each looks like one that it does and that is not there.
func (a *app) warnMembers(s *payloads.Schema, whole jsontext.Object, m *machine.Machine) {
	if s.Properties == nil || m.Input().Validate(whole.JSON()) != nil {
		return // what is refused is said with all that is wrong
	}
	declared := jsontext.ReadObject(s.Properties)
	var missing []string
	for _, p := range declared.Members() {
		if !whole.Has(p.Name) {
			missing = append(missing, p.Name)
		}
	}
	for _, given := range whole.Members() {
		if hint := machine.DidYouMean(given.Name, missing); hint != "" && !declared.Has(given.Name) {
			fmt.Fprintf(a.Err, "warning: the input of machine %q declares no member %q; %s\n", render.Clean(m.Name()), render.Clean(given.Name), render.Clean(hint))
		}
	}
}

// readInput reads the object that --input names.
func (a *app) readInput(text string) (json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if len(text) > int(files.Input.Max) {
			return nil, command.Usage("--input has %d bytes, more than %d", len(text), files.Input.Max)
		}
		return machine.ParseObject("--input", []byte(text))
	}
	data, err := a.ReadFile(text, files.Input)
	switch {
	case err != nil:
		return nil, noInput(text, err)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, command.Hinted(command.Usage("--input %s is empty", text), "an object is written {…}, and {} if there is nothing to say")
	}
	return machine.ParseObject(text, data)
}

// noInput returns the error for a text of --input that is neither an object nor a file that
// can be read: who writes a value meant no file.
func noInput(text string, err error) error {
	trimmed := strings.TrimSpace(text)
	value := json.Valid([]byte(text)) || strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "- ")
	_, wrong := machine.ParseObject("--input", []byte(text))
	switch {
	case isMember(text):
		return command.Hinted(err, "--meta %s gives one member; --input names a file, or is an object: '{…}'", text)
	case value && wrong != nil:
		return command.Hinted(wrong, "--input is an object: '{\"amount\": 120}', or names a file that holds one")
	case wrong == nil:
		return command.Hinted(err, "an object stands in braces: --input '{amount: 120, urgent: true}'")
	}
	return err
}

// metaMembers reads what --meta gives, each member by its schema.
func metaMembers(s *payloads.Schema, texts []string) (list []jsontext.Member, err error) {
	var given jsontext.Object
	var wrong []error // of another type: all of them are said at once
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		name, asJSON := strings.CutSuffix(name, ":")
		switch {
		case !ok || name == "":
			return nil, command.Hinted(command.Usage("--meta %q is not key=value", text), "for example --meta amount=120")
		case given.Has(name):
			return nil, command.Hinted(command.Usage("--meta gives %q twice", name), "leave one of them out")
		}
		member := s.Member(name)
		v, err := member.Read(value)
		if asJSON {
			v, err = jsontext.Tidy([]byte(value))
		}
		switch {
		case err != nil && asJSON:
			return nil, command.Hinted(command.Usage("--meta %s: %q is not one JSON value: %v", name, value, err), "--meta %s=… takes a text as it is", name)
		case err != nil:
			wrong = append(wrong, command.Usage("--meta %s: %v", name, err))
		}
		list = append(list, jsontext.Member{Name: name, Value: v})
		given = given.With(list[len(list)-1:])
	}
	return list, errors.Join(wrong...)
}
