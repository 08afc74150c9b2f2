package session

// An Actor is who did something: the person or program behind an act, and how that is
// known. Subject names it; at a terminal it is "local:" and the user of the computer.
// Method says how it was found out, such as [methodLocal]. Humans are the ids under
// which it may act as a human of a machine; nil if that was not asked.
type Actor struct {
	Subject string   `json:"subject"`
	Method  string   `json:"method"`
	Humans  []string `json:"humans,omitempty"`
}

// methodLocal is the Method of whoever works at the terminal: the operating system
// knows the user.
const methodLocal = "local"

// LocalActor returns the actor for a user of this computer.
func LocalActor(user string) Actor { return Actor{Subject: "local:" + user, Method: methodLocal} }

// Known reports whether it is said who acts.
func (a *Actor) Known() bool { return a != nil && a.Subject != "" && a.Method != "" }
