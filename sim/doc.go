// Package sim is tests only: it plays the engine in a simulated world in which
// everything goes wrong, and checks after every step what must hold whatever happens.
// It is made in the manner of FoundationDB's simulator.
//
// # What is simulated
//
// A world has one store and up to three processes. Each process is a real
// runner.Runner with a clock, caches and an owner's name of its own. Around them are
// made-up services and models, which count what they did and what they charge for each
// key; humans, who look at a question, think, and rule on the round that they saw; late
// answers; and a table of owners. The machine that is played, with its modes, arbiters,
// budgets, audits, irreversible transitions and guards that ask a model or a service, is
// made from the seed.
//
// In every second world the machine has a case: an input, data that transitions set,
// conditions, deciders, approvals with groups and exclusions, states that are due, with
// reminders and timers, and states in which nobody but a timer does anything. Humans rule there with
// payloads, which may differ, take back what they have ruled, and are switched off between
// the first approval and the second. They take back executed rulings of their own. Every act has its actor, and in some runs two humans
// are one person. The models of cases_test.go, case_log_test.go,
// approvals_test.go and due_test.go say what must come of it, from Go functions that stand beside the
// expressions. At the end each
// log is read once more with a machine in which every expression says something else.
//
// Only one activity goes on at a time. Whoever reads or writes the store, sends a
// request, waits for an answer or is about to have its answer taken stops there (world.park) and
// waits for the scheduler, which draws what happens next: who goes on and how, who
// begins something, how far the clock moves, and which fault there is. A bubble of
// testing/synctest says when everybody stands still, and its clock moves only if the
// scheduler says so. No goroutine races another, and nothing waits for a wall clock.
//
// Faults are: a process that stands still past its deadlines and goes on (SIGSTOP and
// SIGCONT); one that crashes, at any point, also just before and just after a commit,
// and between a request and its answer; requests that are refused; answers that are
// lost, late or doubled; clocks that jump, by 72 hours too; the table of owners lost; a
// disk that fails at its k-th operation from now, or reports an error of what it has
// done. Services also answer that they cannot; sessions are cancelled and resumed,
// limits raised, specialists registered and switched off, sessions moved to another
// definition of their machine and back, handed to another driver and back, and forked, while they run. Every tenth
// store is a SQLite file, which each process opens for itself.
//
// # What a seed is
//
// A seed makes the machine and draws all choices, so it plays the same run whenever it
// is played; every tenth seed is played twice to make sure. The choices that were made
// are a tape of texts. A tape can be played with choices left out, which is how a run
// that fails is shrunk.
//
//	go test ./sim                               1,000 seeds
//	make sim SEEDS=100000                       a night's
//	DIALAI_SIM_SEED=42 go test ./sim -run 'TestSim$' -v   one seed, with its trace
//
// # How to read a failure
//
// A failure names the invariant and what is wrong, and then tells the shortest run that
// was found: a line is the simulated time and the choice, such as
//
//	70s  p2 asks w1 for s1 round 3.0 ask 2: arrives
//
// process p2 sends the request to service w1 for the second ask of round 3, attempt 0,
// of session s1. What stands after the colon is the way it went on. "commits 7
// asked+proposed" is a commit of a record that begins at sequence number 7. The last
// line is the command that plays the whole run again.
//
// # How to add to it
//
// An invariant is one line of the table in invariants_test.go: its name, what it says,
// and a function that gets one record of a log (check), with the session before and
// after it, and the world. Then add a mutation to the table in mutations_test.go: a
// defect put into the world, with the invariant that must name it. A check that cannot
// fail proves nothing.
//
// Something new that can happen is a choice: with a text that is the same whenever the
// same thing is possible, a weight, and whether it is a fault. What a process or a human
// can do is in choices of process_test.go and human_test.go; how a request or a commit
// can go on is the list of ways given to park.
package sim
