package session

// LessonOf returns what an event teaches the ledger; nil if that is nothing.
func LessonOf(d Data) *Lesson {
	switch d := d.(type) {
	case *Learned:
		if d.Unruled != nil {
			return &Lesson{Unruled: d.Unruled}
		}
		if d.Outcome != nil || d.Second != nil {
			return &Lesson{Outcome: d.Outcome, Second: d.Second}
		}
	case *Reviewed:
		return d.Lesson
	case *Retracted:
		return d.Lesson
	case *Adopted:
		return d.Lesson
	}
	return nil
}
