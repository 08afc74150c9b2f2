package session

// Who carries a session on by itself. It is a fact of its log, so that every process that
// could carry it on knows whether it is the one that does, and a table of the work to be done can be made anew.
// Whoever steps a session by name, or rules, is not bound by it: two who carry on one session
// come to no harm, it only costs more.

// A Driver says who carries a session on by itself. The zero value is DriverPool.
type Driver string

// The drivers of sessions.
const (
	DriverPool     Driver = ""         // any process that carries on the sessions of its store, as dialai serve does
	DriverTemporal Driver = "temporal" // a workflow of Temporal
	DriverNone     Driver = "none"     // nobody: only who steps it, or runs it, by name
)

// String returns the name that people are shown: pool, temporal or none.
func (d Driver) String() string {
	if d == DriverPool {
		return "pool"
	}
	return string(d)
}

// Valid reports whether d is one of the three.
func (d Driver) Valid() bool { return d == DriverPool || d == DriverTemporal || d == DriverNone }

// DriverChanged records that somebody else carries the session on from now on.
type DriverChanged struct {
	Driver Driver
	Actor  *Actor // who has said so; nil if that is not said
}

func (d *DriverChanged) form(f *form) {
	name := d.Driver.String()
	f.str("driver", &name)
	if d.Driver = Driver(name); name == DriverPool.String() {
		d.Driver = DriverPool
	}
	f.actor("actor", &d.Actor)
	if f.reading && !d.Driver.Valid() {
		f.unknown("driver", name)
	}
}

func applyDriver(s *Session, d *DriverChanged) {
	options := s.Options()
	if options.begun == nil {
		options.begun = new(options.Driver)
	}
	options.Driver = d.Driver
	s.options = &options
}

// started returns the options as the first record has them.
func (o Options) started() Options {
	if o.begun != nil {
		o.Driver, o.begun = *o.begun, nil
	}
	return o
}
