package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// sameHumans looks for humans whose ids differ in case or blanks only: probably one person, who
// would count as two.
func (l *linter) sameHumans() {
	known := map[string]string{}
	look := func(path string, list []Specialist) {
		for i := range list {
			id := list[i].SpecialistID
			if d := l.resolve(&list[i]); !d.IsHuman {
				continue
			}
			like := strings.ToLower(strings.Join(strings.Fields(id), ""))
			if other, ok := known[like]; !ok {
				known[like] = id
			} else if other != id {
				l.report(path+"/"+strconv.Itoa(i)+"/specialistId", false, Problem{Code: "similar-humans",
					Message: fmt.Sprintf("humans %q and %q differ in case or blanks only, and count as two", clip(other, maxNameRunes), clip(id, maxNameRunes)),
					Hint:    "if they are one person write one id everywhere, else choose ids that nobody takes for each other"})
			}
		}
	}
	look("/specialists", l.def.Specialists)
	for i := range l.def.States {
		look(l.statePath(i)+"/specialists", l.def.States[i].Specialists)
	}
}
