package permit

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/dialai/dialai/internal/packs"
)

// What a session keeps of a prompt is read by people and by models, so passwords do not stay in
// it. Tokens that look like ones are found by their form (package packs). A password has none:
// what stands before it tells, in a line of shell the program and the option that it belongs to.
// A reference to a variable is no secret, and stays. What is replaced is the value alone, so that
// whoever rules still sees what would run.

const redacted = "[redacted:named_secret]"

// secretMembers are names of members and options whose value is a secret, without _ and -.
var secretMembers = set("password passwd passphrase pass pwd secret token apikey authorization proxyauthorization accesstoken authtoken refreshtoken idtoken clientsecret secretkey privatekey accesskey secretaccesskey sessiontoken bearertoken xapikey httppassword proxypassword ftppassword registrytoken oauth2bearer")

var joints = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// isSecretMember reports whether a name says that its value is a secret.
func isSecretMember(name string) bool { return secretMembers[joints.Replace(strings.ToLower(name))] }

// secretVariable reports whether a variable is of a secret by its name, however that is made up:
// PGPASSWORD, MYSQL_PWD, github_token.
func secretVariable(name string) bool {
	if isSecretMember(name) || secretName(strings.ToUpper(name)) {
		return true
	}
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"PASSWORD", "PASSWD", "_PWD", "_PASS", "_TOKEN", "SECRET"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Forms in which a text of any kind holds a password: what comes before it is the first group.
var (
	inAddress = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@'"<>]*:)([^\s/'"<>]+)@`)
	inHeader  = regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization["']?\s*[:=][\s\\]*["']?(?:(?:basic|bearer|token|digest|negotiate|apikey)[\s\\]+)?|\b(?:x-)?(?:api-key|auth-token|access-token)["']?\s*:\s*["']?|\b(?:private-token|cookie)["']?\s*:\s*["']?)([A-Za-z0-9+/=._~-]{3,}[^\s'"\\,]*)`)
	inMember  = regexp.MustCompile(`(\\?"([A-Za-z_.-]+)\\?"\s*:\s*\\?")((?:[^"\\]|\\[^"])*)`)
	inForm    = regexp.MustCompile(`(?i)((?:^|[?&;,=\s'"])([A-Za-z0-9_.-]+)=)([^&\s'"]+)`)
	inLine    = regexp.MustCompile(`(?m)(^\s*(?:export\s+)?([A-Z0-9_]+)=["']?)([^\s"']+)`)
	inBody    = regexp.MustCompile(`(?m)(^\s*([A-Za-z0-9_.-]+):\s+["']?)([^\s"']+)`)
	inSent    = regexp.MustCompile(`(\b(?:echo|printf)\s+(?:-n\s+)?["']?)([^\s"'|;&]+)(["']?\s*\|[^|;&]*(?:--password-stdin|\bsudo\s+(?:-\S+\s+)*-S))`)
	inShare   = regexp.MustCompile(`(\s-U\s*[^\s%]+%)([^\s'"]+)`)
	inOption  = regexp.MustCompile(`(?i)(--?([a-z][a-z-]*)[= ]\s*)("[^"]*"|'[^']*'|[^\s'";|&]+)`)
	inClient  = regexp.MustCompile(`(\b(?:mysql|mariadb|sshpass|mysqldump|mysqladmin)\b[^\n;|&]*?\s-p\s?)([^\s'";|&]+)`)
	inUser    = regexp.MustCompile(`(\s(?:-u|--user|-U|--proxy-user)[= ]?\s*["']?[^\s:'"]*:)([^\s'"]+)`)
)

// reference matches what only says where a secret is.
var reference = regexp.MustCompile("^[\"']?(?:\\$|`|<|%[A-Za-z_]|\\[redacted|(?i:basic|bearer|token|digest|negotiate|apikey)$)")

// hide replaces what a form finds, if want says so of the name that it holds.
func hide(text string, form *regexp.Regexp, named bool) string {
	return form.ReplaceAllStringFunc(text, func(found string) string {
		m := form.FindStringSubmatch(found)
		value := m[len(m)-1]
		if reference.MatchString(value) || named && !secretVariable(m[2]) {
			return found
		}
		at := len(m[1])
		return found[:at] + redacted + found[at+len(value):]
	})
}

// hidePasswords replaces the passwords in a text of any kind.
func hidePasswords(text string) string {
	return hide(hide(hide(hide(text, inAddress, false), inHeader, false), inMember, true), inLine, true)
}

// maskLine replaces the passwords in a line of shell.
func maskLine(line string) string {
	line = hide(hide(hide(hidePasswords(maskWords(line, 0)), inForm, true), inShare, false), inBody, true)
	return inSent.ReplaceAllStringFunc(line, func(found string) string {
		m := inSent.FindStringSubmatch(found)
		if reference.MatchString(m[2]) {
			return found
		}
		return m[1] + redacted + m[3]
	})
}

// maskWords replaces those that the commands of a line are given.
func maskWords(line string, depth int) string {
	var file *syntax.File
	err := errUnread
	if len(line) <= maxLine && depth < maxDepth {
		file, err = parsed(line)
	}
	if err != nil { // by the looks of it
		return hide(hide(hide(line, inOption, true), inClient, false), inUser, false)
	}
	e := &edits{line: line, depth: depth}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			e.command(n.Args)
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil && secretVariable(n.Name.Value) {
				e.hide(n.Value, 0)
			}
		case *syntax.SglQuoted:
			e.nested(int(n.Left.Offset()), int(n.End().Offset()), n.Value)
		case *syntax.DblQuoted:
			e.nested(int(n.Left.Offset()), int(n.End().Offset()), "")
		}
		return true
	})
	return e.made()
}

// parsed parses a line, whatever it holds.
func parsed(line string) (file *syntax.File, err error) {
	defer func() {
		if recover() != nil {
			err = errUnread
		}
	}()
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
}

// edits are what is replaced in a line, by where it stands there.
type edits struct {
	line  string
	depth int
	list  []edit
}

type edit struct {
	from, to int
	by       string
}

// made returns the line with what is replaced.
func (e *edits) made() string {
	slices.SortStableFunc(e.list, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, x := range e.list {
		if x.from < at || x.to > len(e.line) {
			continue // lies in one that is replaced
		}
		b.WriteString(e.line[at:x.from] + x.by)
		at = x.to
	}
	return b.String() + e.line[at:]
}

// nested takes up what is in quotes, which may be a line.
func (e *edits) nested(from, to int, value string) {
	if to-from < 2 || to > len(e.line) {
		return
	}
	inner := e.line[from+1 : to-1]
	if value != "" && inner != value || !strings.ContainsAny(inner, " \t\n") {
		return
	}
	if masked := maskWords(inner, e.depth+1); masked != inner {
		e.list = append(e.list, edit{from + 1, to - 1, masked})
	}
}

// command takes up the arguments of a command.
func (e *edits) command(args []*syntax.Word) {
	texts := make([]string, len(args))
	for i, w := range args {
		texts[i] = plainText(e.line[w.Pos().Offset():min(int(w.End().Offset()), len(e.line))])
	}
	for i, at := range secretsIn(texts) {
		e.hide(args[i], at)
	}
}

// plainText returns a word as a program is given it, as far as the word alone tells.
func plainText(raw string) string { return strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(raw) }

// hide replaces what of a word comes after so many bytes of its text.
func (e *edits) hide(w *syntax.Word, after int) {
	from, to := int(w.Pos().Offset()), min(int(w.End().Offset()), len(e.line))
	raw, quote := e.line[from:to], 0
	for i := 0; i < len(raw) && i-quote <= after; i++ {
		if strings.IndexByte(`"'\`, raw[i]) >= 0 {
			quote++
		}
	}
	at := min(after+quote, len(raw))
	if value := raw[at:]; value == "" || reference.MatchString(value) {
		return
	}
	end := to
	if last := raw[len(raw)-1]; quote > 0 && (last == '"' || last == '\'') {
		end-- // the quote that closes
	}
	e.list = append(e.list, edit{from + at, end, redacted})
}

// givesPassword are the programs to which short options give a password: those with which it
// stands in one word, and those with which it is the next.
var givesPassword = map[string]struct{ joined, apart string }{
	"mysql": {joined: "p"}, "mysqldump": {joined: "p"}, "mysqladmin": {joined: "p"}, "mysqlimport": {joined: "p"}, "mysqlshow": {joined: "p"}, "mysqlcheck": {joined: "p"}, "mariadb": {joined: "p"}, "mariadb-dump": {joined: "p"}, "mycli": {joined: "p", apart: "p"},
	"sshpass": {"p", "p"}, "mongo": {"", "p"}, "mongosh": {"", "p"}, "mongodump": {"", "p"}, "redis-cli": {"a", "a"},
	"7z": {joined: "p"}, "7za": {joined: "p"}, "zip": {"P", "P"}, "unzip": {"P", "P"}, "sqlcmd": {"P", "P"}, "bcp": {"P", "P"}, "ldapsearch": {"w", "w"}, "ldapmodify": {"w", "w"}, "ldapadd": {"w", "w"}, "cqlsh": {"p", "p"}, "openssl": {"", "kK"}, "influx": {"", "p"}, "twine": {"", "p"}, "htpasswd": {},
	"http": {"", "a"}, "https": {"", "a"}, "xh": {"", "a"}, "xhs": {"", "a"}, "net": {},
}

// logsIn are those of which that is so after login alone.
var logsIn = set("docker podman skopeo helm oras az")

// secretsIn returns which arguments hold a password, and where in them it begins.
func secretsIn(words []string) map[int]int {
	found := map[int]int{}
	program := ""
	for i, w := range words {
		base := strings.ToLower(w[strings.LastIndexByte(w, '/')+1:])
		gives, known := givesPassword[base]
		if logsIn[program] && w == "login" {
			program = "mongo" // as which it gives it
		}
		if known || logsIn[base] || base == "curl" || base == "wget" {
			program = base
			continue
		}
		if next := i + 1; !known {
			gives = givesPassword[program]
			at, apart := passwordOf(w, program, gives.joined, gives.apart)
			switch {
			case at > 0:
				found[i] = at
			case apart && next < len(words) && !strings.HasPrefix(words[next], "-"):
				found[next] = 0
				if userOption(w) || w == "-a" && program != "redis-cli" || program == "curl" && strings.HasSuffix(w, "u") {
					if found[next] = strings.IndexByte(words[next], ':') + 1; found[next] == 0 {
						delete(found, next)
					}
				}
			}
		}
	}
	if program == "htpasswd" && slices.ContainsFunc(words, func(w string) bool { return len(w) > 1 && w[0] == '-' && strings.Contains(w, "b") }) {
		found[len(words)-1] = 0
	}
	if at := netUse(words); program == "net" && at > 0 {
		found[at] = 0
	}
	return found
}

// netUse returns which word is the password in net use [DEVICE:] SHARE [PASSWORD] [/OPTION…]; 0 if
// none is.
func netUse(words []string) int {
	operands := 0
	for i, w := range words {
		switch {
		case operands == 0 && w != "use", strings.HasPrefix(w, "/"), operands == 1 && (strings.HasSuffix(w, ":") || w == "*"):
			continue
		case operands == 2:
			return i
		}
		operands++
	}
	return 0
}

// userOption reports whether what follows is a user and, after a colon, a password.
func userOption(w string) bool {
	return slices.Contains([]string{"-u", "-U", "--user", "--proxy-user", "--auth"}, w)
}

// passwordOf says where in an argument a password begins, or that the next one is it.
func passwordOf(w, program, joined, apart string) (at int, next bool) {
	name, value, assigned := strings.Cut(w, "=")
	if inner, _, ok := strings.Cut(value, "="); ok && strings.HasPrefix(w, "-") && secretVariable(inner) { // --from-literal=password=…
		return len(name) + len(inner) + 2, false
	}
	bare := strings.TrimLeft(name, "-")
	web := slices.Contains([]string{"curl", "wget", "http", "https", "xh", "xhs"}, program)
	switch {
	case assigned && userOption(name):
		if colon := strings.IndexByte(w, ':'); colon > 0 {
			return colon + 1, false
		}
	case assigned && !strings.ContainsAny(bare, "/?&: ") && secretVariable(bare):
		return len(name) + 1, false
	case strings.HasPrefix(w, "pass:"): // as openssl writes it
		return len("pass:"), false
	case strings.HasPrefix(w, "-") && len(bare) > 1 && !assigned && isSecretMember(bare):
		return 0, true
	case web && (userOption(w) || program == "curl" && len(w) > 2 && w[0] == '-' && w[1] != '-' && strings.HasSuffix(w, "u") && strings.Trim(w[1:], "sSfLkvgiIu#0123456") == ""):
		return 0, true
	case web && strings.HasPrefix(w, "-u") && strings.Contains(w, ":"):
		return strings.IndexByte(w, ':') + 1, false
	case len(w) == 2 && w[0] == '-' && strings.Contains(apart, w[1:]):
		return 0, true
	case len(w) > 2 && w[0] == '-' && strings.IndexByte(joined, w[1]) >= 0:
		return 2, false
	}
	return 0, false
}

// maskArguments replaces the passwords in a list of arguments; ok is false if it is none.
func maskArguments(value json.RawMessage) (list []string, ok bool) {
	if json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	for i, at := range secretsIn(list) {
		if !reference.MatchString(list[i][at:]) {
			list[i] = list[i][:at] + redacted
		}
	}
	for i, w := range list {
		if strings.ContainsAny(w, " \t\n") {
			w = maskLine(w)
		}
		list[i] = packs.Redact(hidePasswords(w))
	}
	return list, true
}
