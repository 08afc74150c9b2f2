package packs

import "strings"

// A PrefixRule is a kind of credentials as tests see it.
type PrefixRule struct {
	Rule, Prefix string
	Rest         string // the bytes that may follow
	Least, Most  int
}

// PrefixRules returns every prefix that secrets are found by.
func PrefixRules() (list []PrefixRule) {
	for _, p := range prefixRules {
		rest := []byte{}
		for c := range 256 {
			if p.rest[c] {
				rest = append(rest, byte(c))
			}
		}
		for prefix := range strings.FieldsSeq(p.prefixes) {
			list = append(list, PrefixRule{p.rule, prefix, string(rest), p.least, p.most})
		}
	}
	return list
}

// Phrases returns the phrases of prompt injection as they are written.
func Phrases() (list [][2]string) {
	for _, p := range phraseTexts {
		list = append(list, [2]string{p.rule, p.text})
	}
	return list
}
