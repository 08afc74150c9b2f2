package agents

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
)

// withoutModels returns the text of a machine without the proposers whose model cannot be
// asked here, and whether there are any: a model without a key would fail in each prompt, and
// say nothing.
func withoutModels(m *machine.Machine, ready func(id, provider string) error) (text []byte, changed bool, err error) {
	var def map[string]any
	numbers := json.NewDecoder(bytes.NewReader(m.JSON()))
	numbers.UseNumber()
	if err := numbers.Decode(&def); err != nil {
		return nil, false, err
	}
	states, _ := def["states"].(map[string]any)
	for _, of := range append(slices.Collect(maps.Values(states)), any(def)) {
		holder, _ := of.(map[string]any)
		list, has := holder["specialists"].([]any)
		if !has {
			continue
		}
		kept := []any{}
		for _, one := range list {
			s, _ := one.(map[string]any)
			model, _ := s["modelId"].(string)
			provider, _ := s["provider"].(string)
			if s["role"] == "proposer" && model != "" && ready(model, provider) != nil {
				changed = true
				continue
			}
			kept = append(kept, one)
		}
		holder["specialists"] = kept
	}
	text, err = json.Marshal(def)
	return text, changed, err
}
