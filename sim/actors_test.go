package sim_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/dialai/dialai/session"
)

// Who acts. Whoever runs the engine is known by the terminal, which proves nothing; humans
// by a key of their own. In some runs two of them are one person.

// operator is whoever runs the engine, and starts the same as whoever starts a session.
var (
	operator = &session.Actor{Subject: "local:op", Method: "local"}
	starts   = &session.Actor{Subject: "local:op", Method: "local", Humans: []string{starter}}
)

const whoActed = "who has acted"

// person returns who acts as a human.
func (w *world) person(id string) string {
	if id == "h2" && w.draw(4, "one person") == 0 {
		return "key:h1"
	}
	return "key:" + id
}

func (h *human) actor() *session.Actor {
	a := &session.Actor{Subject: h.w.person(h.id), Method: "key"}
	if h.w.mutation.is("one person counts as two") {
		a.Method = "none" // which proves nothing
	}
	return a
}

// whoActed compares the actor of each act with who did it.
func (c *check) whoActed() error {
	for _, e := range c.events {
		by, human, act := actorOf(e.Data)
		if !act {
			continue
		}
		want := operator
		switch {
		case human != "":
			want = &session.Actor{Subject: c.w.person(human), Method: "key"}
		case by != nil && by.Humans != nil:
			want = starts
		}
		if c.w.mutation.is("one person counts as two") && human != "" {
			want = by // so that it is noticed by what comes of it
		}
		if !reflect.DeepEqual(by, want) {
			return fmt.Errorf("%s of %q is by %+v, and was by %+v", e.Data.Kind(), human, by, want)
		}
		if d, ok := e.Data.(*session.Executed); ok {
			var persons []string
			for _, id := range d.Authors {
				persons = append(persons, c.w.person(id))
			}
			if slices.Sort(persons); len(slices.Compact(persons)) < len(d.Authors) {
				return fmt.Errorf("%s is executed for %v, of whom two are one person", d.Transition.Name, d.Authors)
			}
		}
	}
	return nil
}

// actorOf returns who has done what an event says, as which human, and whether that is an
// act at all.
func actorOf(d session.Data) (by *session.Actor, human string, act bool) {
	switch d := d.(type) {
	case *session.Created:
		return d.Options.Actor, "", true
	case *session.Proposed:
		return d.Actor, d.SpecialistID, d.IsHuman
	case *session.Ruled:
		return d.Actor, d.SpecialistID, true
	case *session.Executed:
		return d.Actor, d.SpecialistID, d.IsHuman
	case *session.Retracted:
		return d.Actor, d.SpecialistID, true
	case *session.Reviewed:
		return d.Actor, d.SpecialistID, true
	case *session.Resumed:
		return d.Actor, d.SpecialistID, true
	case *session.Moved:
		return d.Actor, "", true
	case *session.DriverChanged:
		return d.Actor, "", true
	case *session.Ended:
		return d.Actor, "", d.Code == session.CodeCancelled
	}
	return nil, "", false
}

// whoManaged looks at the log of the machine.
func (w *world) whoManaged() {
	for rec, err := range w.base.RosterRecords(context.Background(), w.machine.Name(), 0) {
		if err != nil {
			w.fail(whoActed, "the log of the machine: %v", err)
			return
		}
		events, err := session.DecodeRosterEvents(rec.Events)
		if err != nil {
			w.fail(whoActed, "%s: %v", rec.Events, err)
			return
		}
		for _, e := range events {
			switch e.Kind {
			case session.KindRegistered, session.KindEnabled, session.KindDisabled:
				w.count("acts on the roster")
				if !reflect.DeepEqual(e.Actor, operator) {
					w.fail(whoActed, "%s of %s is by %+v", e.Kind, e.ID, e.Actor)
				}
			}
		}
	}
}
