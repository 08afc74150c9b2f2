package guard

import "github.com/dialai/dialai/machine"

// OfMachine returns the guards of a machine: those of the machine, and those of
// states with a section of their own.
func OfMachine(m *machine.Machine) (*Config, map[string]*Config, error) {
	def := m.Definition()
	var base *Config
	if def.Guards != nil {
		base, _ = Parse(def.Guards, false) // it was checked when the file was loaded
	}
	states := map[string]*Config{}
	for _, s := range def.States {
		if s.Guards == nil {
			continue
		}
		section, err := Merge(def.Guards, s.Guards)
		if err != nil {
			return nil, nil, err
		}
		c, problems := Parse(section, false)
		if len(problems) > 0 {
			return nil, nil, &ConfigError{Path: s.Name, Problems: problems}
		}
		states[s.Name] = c
	}
	return base, states, nil
}
