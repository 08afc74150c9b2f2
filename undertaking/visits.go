package undertaking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
)

// Two agents that only ask each other get nowhere, at any price. So some moves may be made a few
// times in a row only: a worker may ask again once there is something new to show. Before the
// last time whoever makes the move is told; beyond it a human is asked.

const (
	kindVisit  = "visit"  // a move was made that is counted
	kindNotice = "notice" // what an agent session is still to be told
)

// maxVisits is how often a move may be made in a row: questions about one record, questions of one
// worker before it begins, and questions of one worker without a commit or a task that changed.
var maxVisits = map[string]int{question: 3, clarify: 5, inquire: 5}

// A visit is how often a move was made in a row, and what makes it a row.
type visit struct {
	Move string `json:"move"`
	Mark string `json:"mark"`
	N    int    `json:"n"`
}

// visit counts a move that is about to be handed in, and returns why it may not be; "" if it may.
func (l *Loop) visit(ctx context.Context, w *Worker, m Move) (over string, err error) {
	most := maxVisits[m.Transition]
	if most == 0 {
		return "", nil
	}
	v := visit{m.Transition, l.mark(ctx, w, m.Transition), 1}
	if had := l.state.Visits[v.Move]; had.Mark == v.Mark {
		v.N = had.N + 1
	}
	if v.N > most {
		over, v = fmt.Sprintf("%s made the move %s %d times, and nothing has changed", w.id(), v.Move, most), visit{Move: v.Move}
		l.note(w.who(), kindRefused, map[string]string{"reason": over})
	} else if v.N == most-1 {
		l.note(w.who(), kindNotice, notices{fmt.Sprintf("You may make the move %s once more; then a human is asked.", v.Move)})
	}
	return over, l.commit(ctx, w.who(), kindVisit, v)
}

// mark says what has to change for a row to end.
func (l *Loop) mark(ctx context.Context, w *Worker, move string) string {
	switch move {
	case question:
		return "record " + itoa(int(l.state.RecordRound))
	case clarify:
		return w.id()
	}
	tasks := sha256.Sum256([]byte(taskList(l.state.Tasks)))
	return w.id() + " " + l.tree(ctx).Head + " " + hex.EncodeToString(tasks[:8])
}

func foldVisit(s *State, _ who, e entry) {
	v := read[visit](e.Data)
	if s.Visits = maps.Clone(s.Visits); s.Visits == nil {
		s.Visits = map[string]visit{}
	}
	s.Visits[v.Move] = v
}

// notices is what an agent session is still to be told.
type notices struct {
	Notice string `json:"notice"`
}

func foldNotice(s *State, a who, e entry) {
	text := read[notices](e.Data).Notice
	s.change(a, e.At, func(w *Worker) {
		if w.Notice != "" {
			text = w.Notice + "\n" + text
		}
		w.Notice = text
	})
}
