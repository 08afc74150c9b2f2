package session

import (
	"bytes"
	"cmp"
	"slices"
)

// Every act of a person or a program is in the log with who has done it: who started a
// session, ruled, proposed, looked, reviewed, raised a limit, took it up or cancelled it,
// or changed the roster. The id under which somebody acts in the machine (specialistId)
// stands beside it, for one person may act under several ids, and several persons under
// one. Older logs have a text in its place where a session was taken up again: they are
// read, and written again as they were.

// An Actor is who did something: the person or program behind an act, and how that is
// known. Subject names it; at a terminal it is "local:" and the user of the computer.
// Method says how it was found out, such as [methodLocal]. Humans are the ids under
// which it may act as a human of a machine; nil if that was not asked.
type Actor struct {
	Subject string   `json:"subject"`
	Method  string   `json:"method"`
	Humans  []string `json:"humans,omitempty"`
}

// Methods that prove nothing: methodLocal is that of whoever works at the terminal, where
// the operating system knows the user, who may act for anybody; methodNone that of a
// program that believes what it is told.
const (
	methodLocal = "local"
	methodNone  = "none"
)

// LocalActor returns the actor for a user of this computer.
func LocalActor(user string) Actor { return Actor{Subject: "local:" + user, Method: methodLocal} }

// Known reports whether it is said who acts.
func (a *Actor) Known() bool { return a != nil && a.Subject != "" && a.Method != "" }

// same reports whether two acts were certainly those of one person or program: both are
// known by a method that authenticates, which all do but local and none.
func (a *Actor) same(b *Actor) bool {
	return a.authenticated() && b.authenticated() && a.Subject == b.Subject
}

func (a *Actor) authenticated() bool {
	return a.Known() && a.Method != methodLocal && a.Method != methodNone
}

// Clone returns a copy that shares nothing with a; nil for nil.
func (a *Actor) Clone() *Actor {
	if a == nil {
		return nil
	}
	own := *a
	own.Humans = slices.Clone(a.Humans)
	return &own
}

// By says who took the session up, in a word: the human as whom it was done, or else the
// actor; "" if that is not said.
func (d *Resumed) By() string {
	if d.Actor == nil {
		return d.SpecialistID
	}
	return cmp.Or(d.SpecialistID, d.Actor.Subject)
}

// actor declares who has acted; it is left out if that is not said. Logs of former
// versions have a text, which is the subject of an actor without a method.
func (f *form) actor(name string, v **Actor) {
	if !f.reading && *v != nil && (*v).Method == "" {
		f.w.str(name, (*v).Subject)
		return
	}
	if f.skims {
		return
	}
	if f.reading && bytes.HasPrefix(f.find(name), []byte{'"'}) {
		*v = &Actor{Subject: f.text(name)}
		return
	}
	value(f, name, v)
}
