package guard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// content judges what a step says: forbidden patterns, packs and the schema. Of
// a human's ruling only packs read what it says.
func (k *checking) content() {
	if k.step.HasOutput && !k.step.Human {
		k.forbidden()
	}
	k.reasons = append(k.reasons, k.c.Packs.Read(k.step, &k.look.packs)...)
	if k.c.Schema != nil && !k.step.Human {
		k.schema()
	}
}

func (k *checking) forbidden() {
	for i := range k.c.Forbidden {
		if !k.c.Forbidden[i].pattern.Matches(k.step.Output, &k.look.text) {
			continue
		}
		k.report(forbiddenReason(i))
	}
}

func forbiddenReason(i int) verdict.Reason {
	return verdict.Reason{
		Code: "forbidden_pattern", Guard: "forbidden", Class: verdict.Retry,
		Message: fmt.Sprintf("the output matches forbidden pattern %d", i+1), Subject: strconv.Itoa(i),
	}
}

// schema holds the output to the schema: what a transition brings as metaJson,
// or, where there are no transitions, the output itself.
func (k *checking) schema() {
	var data []byte
	switch {
	case k.step.Transition == "" && !k.step.HasOutput:
		return
	case k.step.Transition == "":
		data = []byte(k.step.Output)
	case len(k.step.MetaJSON) == 0:
		data = []byte("null")
	default:
		data = k.step.MetaJSON
	}
	_, err := k.look.hasher.Hash(data)
	if err == nil { // it is one JSON value
		err = anonymous(k.c.Schema.Validate(data))
	}
	if err != nil { // which never repeats what was said
		k.report(verdict.Reason{Code: "schema_invalid", Guard: "schema", Class: verdict.Retry, Message: "the output does not fit the schema: " + err.Error()})
	}
}

// anonymous keeps where a value does not fit and which rule says so, and drops
// the value: the validator's errors are a path in words, the keyword, and the
// rest, with colons between.
func anonymous(err error) error {
	if err == nil || errors.Is(err, machine.ErrSchemaWork) {
		return err
	}
	var kept []string
	for part := range strings.SplitSeq(err.Error(), ": ") {
		kept = append(kept, part)
		if !strings.HasPrefix(part, "validating ") {
			break
		}
	}
	last := kept[len(kept)-1]
	if strings.ContainsAny(last, " \"") && !strings.HasPrefix(last, "validating ") {
		kept = kept[:len(kept)-1] // no keyword: it may be a value
	}
	if len(kept) == 0 {
		return errors.New("it does not fit")
	}
	return errors.New(strings.Join(kept, ": "))
}
