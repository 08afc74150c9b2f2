package render

import (
	"cmp"
	"net/url"
	"strings"
)

// A Style is how results are shown, and how commands are written that go with them.
type Style struct {
	JSON    bool   // as JSON, one value a line
	Quiet   bool   // only how it ended
	Verbose bool   // more, on stderr
	Store   string // as --store names it, "" for the default
	Server  string // as --server names it, "" for none: then commands go on there
	Program string // as people call it, "" for dialai
	Width   int    // columns of the terminal that tables are to fit; 0 if there is none
	Full    bool   // ids whole, and values however long they are
	// Short returns what is printed of the id of a session, and any other text as it is; nil
	// prints ids whole.
	Short func(id string) string
}

// ID returns what is printed of the id of a session.
func (st Style) ID(id string) string {
	if st.Short == nil {
		return id
	}
	return st.Short(id)
}

// Name returns what people call this program.
func (st Style) Name() string { return cmp.Or(st.Program, "dialai") }

// StoreName returns what is shown of a store that is named as --store does: the address of a database
// without the password that it may hold, which PGPASSWORD or a password file gives as well.
func StoreName(name string) string {
	if !strings.HasPrefix(name, "postgres://") && !strings.HasPrefix(name, "postgresql://") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "postgres://…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for key := range q {
		if strings.Contains(strings.ToLower(key), "password") {
			q.Del(key)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Command returns a command line of this program that goes on with the present
// store, or at the present server.
func (st Style) Command(name string, args []string, words ...string) Command {
	c := Command{Path: append([]string{st.Name()}, strings.Fields(name)...), words: words}
	for _, arg := range args {
		c.Args = append(c.Args, st.ID(arg))
	}
	switch {
	case st.Server != "":
		c.words = append(c.words, "--server", st.Server)
	case st.Store != "":
		c.words = append(c.words, "--store", StoreName(st.Store))
	}
	return c
}
