// Package session says what happened in a run of a machine, and what that makes of it. It
// drives nothing: it asks nobody, keeps nothing, and reads no clock.
//
// A [Session] is an immutable value. What changes it is an [Event]; [Apply] is the only
// function that applies one, live and when a log is read back, so that what is stored and
// what is rebuilt cannot differ. The stored form of events is written by [AppendEvents]
// and read by a [Folder]; a [Store] keeps it, as records that are chained by hashes.
//
//	session.go, status.go     a session, and what it is doing
//	round*.go, ask.go         its open round: who was asked, what came, what was decided
//	ask_state.go              what becomes of an ask, and who says what it is charged: one table
//	event.go                  what may happen
//	form*.go, folder.go       how that is stored
//	fold.go, opening.go       what it makes of a session
//	account*.go               what each ask costs, settled once
//	rulings.go, review.go     what humans say, before and after a round is closed
//	erase.go                  how payloads are taken out of what is stored
//	withheld*.go, digest.go   what who may see, and what a ruling is about
//	program*.go, roster*.go   the compiled machine, and who was registered for it
//	agent_log.go              what agents did about it, in a log beside its own
//	store.go                  what a store promises
//	view.go, decision.go      what is shown
//
// Values that a session returns are shared: callers must not change them.
package session
