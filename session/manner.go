package session

// A Manner is how a human came to a word, for the record: nobody learns from it, and it changes no
// digest of a question. A word that was given in bulk is never blind.
type Manner struct {
	Looked int64  // for how many milliseconds the question was visible, at most [MaxLooked]; 0 if that is not said
	Note   string // as large as a reasoning at most; "" if there is none
	Bulk   bool   // others were given with it at once
}

// MaxLooked is the longest that a question counts as looked at, in milliseconds: a day.
const MaxLooked = 86_400_000

func (m *Manner) form(f *form) {
	count(f, "looked", &m.Looked)
	if f.reading && (m.Looked < 0 || m.Looked > MaxLooked) {
		f.refuse("looked", string(f.find("looked")))
	}
	if f.reading && f.skims {
		return
	}
	f.opt("note", &m.Note)
	f.flag("bulk", &m.Bulk)
}
