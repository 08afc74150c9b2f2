// Package permit says what a coding agent asks to be allowed: of which kind that is, whether
// it stays in the agent's folder, whether it only reads, whether somebody has listed it.
//
// An agent's prompt names a tool and what it is given. lookAt turns it into facts, the
// members of the metaJson by which the machine of permissions decides. It runs nothing and
// reads no file: of the world it looks only at where links lead and at which program a name
// stands for. It fails closed. What it cannot read is neither inside nor read-only, no rule
// allows it, and where what is dangerous cannot be excluded it is dangerous. So each answer
// that lets something pass is about what was read whole, and the rest is for a human.
//
// The facts are no sandbox. A program that is not known, such as make, does what it likes
// with the paths it is given and with others; what is inside says only which paths a prompt
// names.
package permit

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
)

// A Prompt is what an agent asks: may I use this tool with this input?
type Prompt struct {
	Agent        string          `json:"agent"`
	AgentSession string          `json:"agentSession"`
	Undertaking  string          `json:"undertaking,omitempty"`
	Tool         string          `json:"tool"`  // as the agent names it
	Input        json.RawMessage `json:"input"` // not masked
	Cwd          string          `json:"cwd"`   // absolute; in any other nothing is inside
	BlockedPath  string          `json:"blockedPath,omitempty"`
	Suggestions  json.RawMessage `json:"suggestions,omitempty"` // shown, never applied
	AskedAt      time.Time       `json:"askedAt"`
}

// The kinds, each the state in which such a prompt is decided. What is dangerous goes before
// all others.
const (
	kindShell     = "shell"
	kindWrite     = "write"
	kindNetwork   = "network"
	kindQuestion  = "question"
	kindOther     = "other"
	kindDangerous = "dangerous"
)

// facts are what is known of a prompt. The zero facts allow nothing.
type facts struct {
	Kind        string          `json:"kind"`     // shell, write, network, question, other, or dangerous
	Listed      string          `json:"listed"`   // "allow", "deny", or "" if no rule is about it
	Inside      bool            `json:"inside"`   // every path it names lies in cwd, links resolved; never what is dangerous or for the network
	ReadOnly    bool            `json:"readOnly"` // a shell line of which every command only reads
	Input       json.RawMessage `json:"input"`    // secrets masked; null if it is no JSON
	InputDigest string          `json:"inputDigest"`
}

// Settings are by what prompts are judged. A list that is nil stands for its default, an
// empty one for nothing.
type Settings struct {
	Secret []byte // 32 bytes; the key of every InputDigest
	Rules  Rules

	Home string // what ~ and $HOME stand for; "" if nobody knows
	Path string // the PATH of the agent; without one nothing resolves to the system's program

	Network     []string // programs [curl wget ssh scp and others]
	Publishes   []string // words that publish, as an argument of any program [push publish and others]
	Credentials []string // names of files and folders, with the wildcards of path.Match
	Protected   []string // names that are never inside, since what they hold runs programs [.git .claude .codex .mcp.json]
	ReadOnly    []string // programs, of those that are known to only read [all of them]
	SystemDirs  []string // where the system has its programs [/bin /usr/bin and others]
}

// The defaults of Settings.
var (
	defaultNetwork     = []string{"curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "tftp", "mail", "mailx", "mutt", "sendmail"}
	defaultPublishes   = []string{"push", "publish", "unpublish", "upload", "deploy", "yank", "destroy"}
	defaultCredentials = []string{".ssh", ".aws", ".azure", ".gnupg", ".kube", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".docker/config.json", ".config/gh", ".config/gcloud", ".cargo/credentials", ".cargo/credentials.toml", ".vault-token", ".password-store", ".env", ".env.*", ".envrc", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "etc/shadow", "proc/*/environ", "proc/*/task/*/environ", ".codex/auth.json", ".claude/.credentials.json", ".claude.json", "server-key", "*.control.key", "share/dialai"}
	defaultProtected   = []string{".git", ".claude", ".codex", ".mcp.json"}
	defaultSystemDirs  = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}
)

// withDefaults returns s with the lists that it does not have.
func (s Settings) withDefaults() Settings {
	for _, of := range []struct {
		list     *[]string
		defaults []string
	}{
		{&s.Network, defaultNetwork}, {&s.Publishes, defaultPublishes}, {&s.Credentials, defaultCredentials},
		{&s.Protected, defaultProtected}, {&s.ReadOnly, readers()}, {&s.SystemDirs, defaultSystemDirs},
	} {
		if *of.list == nil {
			*of.list = of.defaults
		}
	}
	return s
}

// lookAt says what is known of a prompt. The error says that s has no secret of 32 bytes; the
// facts are then zero. lookAt may be called concurrently.
func lookAt(p Prompt, s Settings) (facts, error) {
	if len(s.Secret) != secretSize {
		return facts{}, fmt.Errorf("the secret of input digests has %d bytes, not %d", len(s.Secret), secretSize)
	}
	s = s.withDefaults()
	f := facts{Input: masked(p.Input, tools[p.Tool] == kindShell), InputDigest: inputDigest(s.Secret, p.Tool, p.Cwd, p.Input)}
	l := &look{Settings: s, prompt: p, paths: newPaths(p.Cwd, s), budget: maxTexts}
	_, err := jsontext.Compact(p.Input)
	l.input, l.unread = jsontext.ReadObject(p.Input), err != nil
	f.Kind = l.kind()
	if l.mentionsCredentials() {
		f.Kind = kindDangerous
	}
	f.Inside = l.inside && f.Kind != kindDangerous && (p.BlockedPath == "" || l.paths.inside(p.BlockedPath))
	f.ReadOnly = l.readOnly && f.Kind != kindDangerous
	f.Listed = l.listed()
	return f, nil
}

// A look is one prompt while it is looked at. Each kind of tool fills in the rest.
type look struct {
	Settings
	prompt   Prompt
	paths    *paths
	input    jsontext.Object
	unread   bool   // what it says could not be read whole
	lines    *lines // of a shell tool
	budget   int    // how many texts may still be read as lines
	subjects []subject
	inside   bool
	readOnly bool
}

// A subject is what rules about a tool that is no shell are compared with: a file, an address.
type subject struct {
	certain string   // the one form by which it may be allowed
	forms   []string // those by which it may be denied
}

// kind looks at what the tool is given.
func (l *look) kind() string {
	switch tools[l.prompt.Tool] {
	case kindShell:
		return l.shell()
	case kindWrite:
		return l.write()
	case kindNetwork:
		url, ok := l.text("url")
		if ok {
			l.subjects = []subject{{url, []string{url}}}
		}
		return kindNetwork
	case kindQuestion:
		return kindQuestion
	}
	for word := range strings.FieldsFuncSeq(lowerWords(l.prompt.Tool), func(r rune) bool { return r == '_' }) {
		if slices.Contains(l.Publishes, word) {
			return kindDangerous
		}
	}
	if member, ok := pathReaders[l.prompt.Tool]; ok {
		l.reads(member)
	} else if l.runsDanger() {
		return kindDangerous
	}
	return kindOther
}

// runsDanger reports whether a tool that nobody knows is given what would be dangerous as a
// line of shell.
func (l *look) runsDanger() bool {
	v := &lines{look: l}
	for _, m := range l.input.Members() {
		if !slices.Contains([]string{"command", "cmd", "script", "code", "shell", "args", "argv"}, strings.ToLower(m.Name)) {
			continue
		}
		var argv []string
		text, _ := l.text(m.Name)
		if json.Unmarshal(m.Value, &argv) == nil {
			text = strings.Join(argv, " ")
		}
		if v.holdsDanger(text) {
			return true
		}
	}
	return false
}

// tools are those that agents have, by what they do.
var tools = map[string]string{
	"Bash": kindShell, "PowerShell": kindShell, "shell": kindShell, "local_shell": kindShell, "container.exec": kindShell, "exec_command": kindShell, "unified_exec": kindShell, "write_stdin": kindShell,
	"commandExecution": kindShell, "item/commandExecution/requestApproval": kindShell, "execCommandApproval": kindShell,
	"Edit": kindWrite, "Write": kindWrite, "MultiEdit": kindWrite, "NotebookEdit": kindWrite, "apply_patch": kindWrite,
	"fileChange": kindWrite, "item/fileChange/requestApproval": kindWrite, "applyPatchApproval": kindWrite,
	"WebFetch": kindNetwork, "WebSearch": kindNetwork, "web_search": kindNetwork, "web_fetch": kindNetwork, "webSearch": kindNetwork,
	"AskUserQuestion": kindQuestion, "requestUserInput": kindQuestion, "request_user_input": kindQuestion, "item/tool/requestUserInput": kindQuestion,
}

// pathReaders are tools that read files, by the member that names one; where it is absent it
// is cwd.
var pathReaders = map[string]string{"Read": "file_path", "NotebookRead": "notebook_path", "LS": "path", "Grep": "path", "Glob": "path"}

// lowerWords writes a name as words between underscores: mcp__git__pushFiles is
// mcp__git__push_files.
func lowerWords(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			if i > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// text returns a member of the input that is a text.
func (l *look) text(name string) (s string, ok bool) {
	value := l.input.Get(name)
	return s, len(value) > 0 && value[0] == '"' && jsontext.Unmarshal(value, &s) == nil && !l.unread
}

// reads looks at a tool that reads what one member names.
func (l *look) reads(member string) {
	path, ok := l.text(member)
	if !l.input.Has(member) && member == "path" {
		path, ok = ".", true
	}
	pattern, _ := l.text("pattern")
	if ok {
		l.names(path)
		l.inside = l.inside && (l.prompt.Tool != "Glob" || l.paths.inside(pattern))
	}
}

// names takes up files that a tool names.
func (l *look) names(files ...string) {
	l.inside = len(files) > 0
	for _, f := range files {
		in := l.paths.inside(f) && !strings.HasPrefix(f, "~")
		l.inside = l.inside && in
		s := subject{forms: []string{f, filepath.Clean(f)}}
		if real, ok := l.paths.real(f); ok {
			s.certain = l.paths.relative(real)
			s.forms = append(s.forms, s.certain, real)
		}
		l.subjects = append(l.subjects, s)
	}
}

// mentionsCredentials reports whether a text in the input is the path of credentials.
func (l *look) mentionsCredentials() bool {
	if tools[l.prompt.Tool] == kindShell || tools[l.prompt.Tool] == kindQuestion {
		return false // the line has been read
	}
	if l.prompt.BlockedPath != "" && l.paths.credentials(l.prompt.BlockedPath) {
		return true
	}
	found := false
	eachText(l.prompt.Input, func(s string) {
		found = found || !strings.ContainsAny(s, "\n") && len(s) < maxPath && l.paths.credentials(s)
	})
	return found
}
