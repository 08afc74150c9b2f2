package undertaking

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/specialist"
)

// A dump is a file beside the store that says where an undertaking stands, for people and
// programs that have no store to look into. The logs say the same and outrank it: a dump that is
// gone, torn or somebody else's is made again from them.
//
// It is replaced whole. The new one is written beside the old one and synced, takes its name, and
// then the folder is synced. Whoever reads finds the old one or the new one, whatever was killed
// and whichever disk was full in between.

// A Dump is what the file has. The zero value of a member is written as such; only a worker's
// reason may be missing.
type Dump struct {
	Task           string               `json:"task"`
	ManagerSession string               `json:"arbiter_session_id"` // the agent's own id; "" without a manager
	Workers        []DumpWorker         `json:"orchestrators"`      // by number
	Version        int                  `json:"version"`            // of the format; [WriteDump] sets it
	Session        specialist.SessionID `json:"session"`
	State          string               `json:"state"`
	Seq            int64                `json:"seq"` // of the newest entry of the session's log
	Cwd            string               `json:"cwd"`
	GitHead        string               `json:"git_head"` // "" without git
	Spent          struct {
		USD    exact.Money `json:"usd"`
		Tokens int64       `json:"tokens"`
	} `json:"spent"`
	SavedAt specialist.Time `json:"saved_at"`
}

// A DumpWorker is what a [Dump] has of a worker.
type DumpWorker struct {
	ID           string `json:"id"`         // orch-1
	AgentSession string `json:"session_id"` // the agent's own id
	Status       string `json:"status"`     // active or completed
	Number       int    `json:"number"`
	Agent        string `json:"agent"`
	Reason       string `json:"reason,omitempty"` // why it was let go
}

// dumpVersion is the version of the format.
const dumpVersion = 1

// ErrNoDump is wrapped if a file is there and is no whole dump of an undertaking: it is torn, or
// foreign. The logs say what it should.
var ErrNoDump = errors.New("no whole dump of an undertaking")

// WriteDump writes d into a folder, as SESSION.json, which only its owner can read. It makes the
// folder if there is none. The file is on disk when WriteDump returns nil; otherwise it is still
// the old one, or already the new one, and whole.
func WriteDump(dir string, d Dump) error {
	if d.Session == (specialist.SessionID{}) {
		return errors.New("a dump has no session")
	}
	d.Version = dumpVersion
	if d.Workers == nil {
		d.Workers = []DumpWorker{}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return err
	}
	if int64(text.Len()) > files.Dump.Max {
		return fmt.Errorf("dump of session %s: %w: %d bytes", d.Session, files.ErrTooLarge, text.Len())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, d.Session.String()+".json"), text.Bytes())
}

// ReadDump reads what [WriteDump] has written. The error wraps [ErrNoDump] for a file that is
// torn or foreign, and is that of the system if it cannot be read.
func ReadDump(path string) (d Dump, err error) {
	text, err := files.ReadRegular(path, files.Dump)
	if errors.Is(err, files.ErrTooLarge) || errors.Is(err, files.ErrNotRegular) {
		return d, fmt.Errorf("%w: %w", ErrNoDump, err)
	}
	if err != nil {
		return d, err
	}
	problem := parseDump(text, &d)
	if problem == "" && filepath.Base(path) != d.Session.String()+".json" {
		problem = "it has another session than its name"
	}
	if problem != "" {
		return Dump{}, fmt.Errorf("%w: %s: %s", ErrNoDump, path, problem)
	}
	return d, nil
}

// parseDump reads a dump and returns what is wrong with it, which repeats nothing of it. Members
// that it does not know are those of a later program.
func parseDump(text []byte, d *Dump) (problem string) {
	if !json.Valid(text) {
		return "it is torn: it is not one value of JSON"
	}
	if json.Unmarshal(text, d) != nil {
		return "it is foreign: its members are others"
	}
	switch {
	case d.Version != dumpVersion:
		return fmt.Sprintf("it is foreign: its version is %d, not %d", d.Version, dumpVersion)
	case d.Session == (specialist.SessionID{}) || d.State == "" || d.Workers == nil:
		return "it is foreign: members are missing"
	}
	for _, w := range d.Workers {
		if w.Status != "active" && w.Status != "completed" {
			return "it is foreign: a worker has another status than active or completed"
		}
	}
	return ""
}

// replaceFile has a file hold data, which it does whole or not at all, whatever fails.
func replaceFile(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder has the names in a folder be on disk. Windows does so by itself, and opens none.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
