package session

import (
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// A writer appends the members of one JSON object.
type writer struct {
	dst  []byte
	some bool
}

func object(dst []byte) writer { return writer{dst: append(dst, '{')} }

func (w *writer) end() []byte { return append(w.dst, '}') }

func (w *writer) name(name string) {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
	w.dst = append(append(append(w.dst, '"'), name...), '"', ':')
}

// str writes a text; opt only if it is not empty.
func (w *writer) str(name, v string) {
	w.name(name)
	w.dst = jsontext.AppendString(w.dst, v)
}

func (w *writer) opt(name, v string) {
	if v != "" {
		w.str(name, v)
	}
}

func (w *writer) int(name string, v int64) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, v, 10)
}

func (w *writer) bool(name string, v bool) {
	w.name(name)
	w.dst = strconv.AppendBool(w.dst, v)
}

func (w *writer) raw(name string, v []byte) {
	if v != nil {
		w.name(name)
		w.dst = append(w.dst, v...)
	}
}

func (w *writer) time(name string, t specialist.Time) {
	w.name(name)
	w.dst = append(t.Append(append(w.dst, '"')), '"')
}

func (w *writer) money(name string, m exact.Money) {
	w.name(name)
	w.dst = m.Append(w.dst)
}

func (w *writer) strs(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.dst = append(w.dst, '[')
	for i, s := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = jsontext.AppendString(w.dst, s)
	}
	w.dst = append(w.dst, ']')
}
