package spend

import (
	"regexp"
	"strings"
	"time"
)

// versionForms are the ends of a model's name that name a version of it, and no
// other model: days, as 2024-07-18, 20240718, 0718 or 07-18, after - or @; and the
// numbers that Google gives, as -001.
var versionForms = regexp.MustCompile(`[-@](20\d\d-[01]\d-[0-3]\d|20\d\d[01]\d[0-3]\d|(0[1-9]|1[0-2])-?[0-3]\d|00\d)$`)

// openForms are the ends that leave the version, or the account, open.
var openForms = []string{"-latest", ":latest", ":free"}

// PriceNames returns the names under which the price of a model is looked up: its
// own, and then those that it has without the ends that name a version. A name
// that merely begins like another, as gpt-5-pro, is that of another model.
func PriceNames(model string) []string {
	names := []string{model}
	for {
		base, version, open := cutForm(model)
		if version == "" && !open || base == "" {
			return names
		}
		names, model = append(names, base), base
	}
}

// cutForm cuts one end off a name: a version, or one that leaves it open.
func cutForm(name string) (base, version string, open bool) {
	for _, form := range openForms {
		if base, ok := strings.CutSuffix(name, form); ok {
			return base, "", true
		}
	}
	if at := versionForms.FindStringIndex(name); at != nil {
		return name[:at[0]], name[at[0]+1:], false
	}
	return name, "", false
}

// SameModel reports whether two names are those of one model: they are equal but
// for the letters' case, the name of a provider before one of them, and ends that
// name a version, of which only one may have one or both have the same.
func SameModel(a, b string) bool {
	baseA, versionA := bareModel(a)
	baseB, versionB := bareModel(b)
	if versionA != "" && versionB != "" && versionA != versionB {
		return false
	}
	return sameBase(baseA, baseB)
}

// sameBase compares names without versions; what stands before a slash counts only
// if both have it.
func sameBase(a, b string) bool {
	if a == b {
		return a != ""
	}
	longer, shorter := a, b
	if len(b) > len(a) {
		longer, shorter = b, a
	}
	return shorter != "" && !strings.Contains(shorter, "/") && strings.HasSuffix(longer, "/"+shorter)
}

// bareModel returns a name in lower case without the ends that name a version, and
// that version without its dashes.
func bareModel(name string) (base, version string) {
	base = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "models/")
	for {
		next, found, open := cutForm(base)
		if found == "" && !open {
			return base, version
		}
		base, version = next, version+strings.ReplaceAll(found, "-", "")
	}
}

// AkinModels reports whether one name is part of the other, but for the provider
// before it, and they are not of one model: then they are likely to be models of one
// family, at different prices, as gpt-5 and gpt-5-pro are.
func AkinModels(a, b string) bool {
	if SameModel(a, b) {
		return false
	}
	short := func(name string) string {
		name, _ = bareModel(name)
		return name[strings.LastIndexByte(name, '/')+1:]
	}
	a, b = short(a), short(b)
	return a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}

// Find returns the newest price of a model: its own, or that of the model which its
// name is a version of. See [PriceNames].
func (t *PriceTable) Find(model string) (p Price, known bool) {
	for _, name := range PriceNames(model) {
		if p, known = t.Price(name, time.Time{}); known {
			return p, true
		}
	}
	return Price{}, false
}

// Called says of which model a call was.
type Called struct {
	Model    string // that is charged for; "" for calls of no model
	Asked    string // the model that was asked, if another one answered
	Answered string // how the provider calls the model that answered; may be ""
}

// CalledOf returns what a call of a model is charged as that another name answered:
// as that model, if the name is one of its own or there is none, else as the other.
func CalledOf(asked, answered string) Called {
	if answered == "" || SameModel(asked, answered) {
		return Called{Model: asked, Answered: answered}
	}
	return Called{Model: answered, Asked: asked, Answered: answered}
}

// String names the model, and the one that was asked if that is another.
func (c Called) String() string {
	if c.Asked == "" || c.Asked == c.Model {
		return c.Model
	}
	return c.Model + " (which answered for " + c.Asked + ")"
}
