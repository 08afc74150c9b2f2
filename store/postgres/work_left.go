package postgres

import "time"

// What a process cannot step, for it is too old or lacks what the machine needs, it leaves to others for a while.
// Only this process remembers that: the rows of the sessions say that they are ready, so whoever can step them has
// them at once.
//
// It remembers so many sessions and no more. Where there are more, it leaves the whole machine to others of which it
// has left the most, sessions that it could step included, and goes on with the other machines.

// left is what a process leaves to others, each until a moment. The zero value leaves nothing. It is guarded by
// worker.sending.
type left struct {
	sessions map[int64]leftSession // by sessions.id; leftAtMost of them
	machines map[int64]time.Time   // by machines.id
}

// A leftSession is one of a machine.
type leftSession struct {
	machine int64
	until   time.Time
}

// leave has a session not be claimed until a moment.
func (l *left) leave(of *lease, until time.Time) {
	if l.sessions == nil {
		l.sessions, l.machines = map[int64]leftSession{}, map[int64]time.Time{}
	}
	if l.sessions[of.row] = (leftSession{of.machine, until}); len(l.sessions) > leftAtMost {
		l.leaveMachine()
	}
}

// leaveMachine replaces the sessions of the machine that has the most of them by the machine.
func (l *left) leaveMachine() {
	count, most := map[int64]int{}, int64(0)
	for _, s := range l.sessions {
		if count[s.machine]++; count[s.machine] > count[most] {
			most = s.machine
		}
	}
	for row, s := range l.sessions {
		if s.machine != most {
			continue
		}
		if s.until.After(l.machines[most]) {
			l.machines[most] = s.until
		}
		delete(l.sessions, row)
	}
}

// now returns the sessions and the machines that are left to others now, and forgets the rest.
func (l *left) now() (sessions, machines []int64) {
	sessions, machines = []int64{}, []int64{} // not NULL
	now := time.Now()
	for row, s := range l.sessions {
		if now.After(s.until) {
			delete(l.sessions, row)
		} else {
			sessions = append(sessions, row)
		}
	}
	for id, until := range l.machines {
		if now.After(until) {
			delete(l.machines, id)
		} else {
			machines = append(machines, id)
		}
	}
	return sessions, machines
}
