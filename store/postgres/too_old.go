package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/dialai/dialai/session"
)

// A store may come to be for newer versions only, as when one of them has written what older ones would misread. Its
// row in meta says so (min_reader, min_writer). A process that is too old may not open it (migrate.go); one that has it
// open has to bring to an end what it does. So each looks whenever it connects, with each renewal of its owners, and
// else every 10 s, whether it carries sessions on or not. It can still read and commit, or what it has begun could not
// be ended; it is handed out no session any more (work_claim.go), and whoever opened the store is told
// (Options.TooOld).

// formOf is the subquery for the form that a program has to know which uses the store.
const formOf = `(SELECT greatest(min_reader, min_writer)::bigint FROM meta)`

// outgrown is the error of a process that is too old for a store since others have written to it.
func outgrown(form int64) error {
	return &session.NewerError{What: "the store", Has: fmt.Sprintf("it is of form %d", form)}
}

// tooOld returns that error if the store was too new when it was looked at last.
func (d *database) tooOld() error {
	if form := d.form.Load(); form > format {
		return outgrown(form)
	}
	return nil
}

// noticed takes in the form of the store.
func (d *database) noticed(form int64) {
	if was := d.form.Swap(form); form > format && was <= format && d.options.TooOld != nil {
		d.options.TooOld(outgrown(form))
	}
}

// look looks at the form of the store until that is closed.
func (d *database) look(looked chan<- struct{}) {
	defer close(looked)
	tick := time.NewTicker(d.options.hurried(renewEvery))
	defer tick.Stop()
	for {
		select {
		case <-d.closing.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(d.closing, d.options.hurried(renewEvery))
		if form, err := one[int64](ctx, d, `SELECT `+formOf); err == nil { // else next time
			d.noticed(form)
		}
		cancel()
	}
}
