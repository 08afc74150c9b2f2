package machine

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Words of earlier drafts of JSON Schema that check nothing in draft 2020-12. Whoever
// writes one believes that something is checked: so such a word is an error, unless
// "$schema" says that the schema is of draft 7, where it is checked. ("definitions" is
// no such word: references lead there as to "$defs".)

// A SchemaReading says how a schema that does not name its draft is read where words of
// earlier drafts stand in it.
type SchemaReading uint8

// The readings.
const (
	RefuseEarlier SchemaReading = iota // draft 2020-12: they are errors
	CheckEarlier                       // as draft 7, which checks them
	IgnoreEarlier                      // draft 2020-12: they check nothing, as in definitions stored before they were errors
)

const draft7 = "http://json-schema.org/draft-07/schema#"

// readDraft settles the draft of a schema.
func readDraft(s *jsonschema.Schema, reading SchemaReading) error {
	if s.Schema == drafts[2] || s.Schema == drafts[3] || reading == IgnoreEarlier {
		return nil
	}
	for path, part := range schemas("", s) {
		switch err := earlierWord(path, part); {
		case err == nil:
		case reading == CheckEarlier:
			if s.Schema == "" {
				s.Schema = draft7
			}
			return nil
		default:
			return err
		}
	}
	return nil
}

// earlierWord returns an error about the first word of an earlier draft in s itself.
func earlierWord(path string, s *jsonschema.Schema) error {
	word, instead := "", ""
	switch {
	case s.ItemsArray != nil:
		word, instead = "items", "a list of items checks nothing in draft 2020-12: write prefixItems"
	case s.AdditionalItems != nil:
		word, instead = "additionalItems", "additionalItems checks nothing in draft 2020-12: write items, beside prefixItems"
	case s.DependencyStrings != nil && s.DependencySchemas != nil:
		word, instead = "dependencies", "dependencies checks nothing in draft 2020-12: write dependentRequired and dependentSchemas"
	case s.DependencyStrings != nil:
		word, instead = "dependencies", "dependencies checks nothing in draft 2020-12: write dependentRequired"
	case s.DependencySchemas != nil:
		word, instead = "dependencies", "dependencies checks nothing in draft 2020-12: write dependentSchemas"
	case s.Extra["$recursiveRef"] != nil:
		word, instead = "$recursiveRef", "$recursiveRef checks nothing in draft 2020-12: write $dynamicRef"
	case s.Extra["$recursiveAnchor"] != nil:
		word, instead = "$recursiveAnchor", "$recursiveAnchor names nothing in draft 2020-12: write $dynamicAnchor"
	default:
		return nil
	}
	return &SchemaError{path + "/" + word, fmt.Sprintf("at #%s, %s (or name the draft: \"$schema\": %q)", path, instead, draft7)}
}
