package packs

import (
	"math"
	"strings"
)

// Credentials, found in two ways. Most issuers give theirs a prefix: prefixRules has
// for each what may follow, how long it is and how many bits of entropy (Shannon 1948)
// its bytes carry at least, which tells a key from a word. Otherwise a name tells
// (api_key, password, token, a Bearer header, a URL with a user): the value behind it
// must look as if drawn by a machine. Placeholders of documentation are passed over,
// and so are values below 16 characters after a name: a short password looks like any
// word.
//
// Every rule looks at most so far ahead, and what is longer is only measured, so a text
// of any length takes time in proportion to it.

// secretRules find credentials: by the prefix that their issuer gives them, with
// a rest that looks random, and by a name such as api_key before a value that
// does. A short password is neither, and is not found.
var secretRules = newRuleSet(issued, []detector{
	{"private_key", "-", "-----BEGIN ", privateKey},
	{"url_password", ":", "://", urlPassword},
	{"named_secret", ":=", "", namedSecret},
	{"bearer_token", "Bb", "", bearer},
})

// A prefixRule is a kind of credentials that begin alike: after the prefix come
// at least least bytes of the set, and, where most is given, at most that many.
type prefixRule struct {
	rule        string
	prefixes    string // separated by blanks
	rest        *byteSet
	least, most int
	entropy     float64 // bits for each byte of the rest, at least
}

var (
	hexBytes    = bytesIn("0-9a-f")
	base64Bytes = bytesIn("0-9A-Za-z+/=")
	dottedBytes = bytesIn("0-9A-Za-z_.-")
	valueBytes  = bytesIn("0-9A-Za-z+/=_.~-")
)

// prefixRules has longer prefixes before those that they begin with.
var prefixRules = []prefixRule{
	{"aws_access_key", "AKIA ASIA ABIA ACCA", bytesIn("0-9A-Z"), 16, 16, 2.5},
	{"github_token", "ghp_ gho_ ghu_ ghs_ ghr_", bytesIn("0-9A-Za-z_"), 36, 0, 3},
	{"github_token", "github_pat_", bytesIn("0-9A-Za-z_"), 36, 0, 3},
	{"gitlab_token", "glpat- glptt- gldt- glrt- glcbt- glsoat-", dottedBytes, 20, 0, 3},
	{"slack_token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", nameBytes, 20, 0, 2.5},
	{"slack_webhook", "https://hooks.slack.com/services/", bytesIn("0-9A-Za-z/"), 30, 0, 3},
	{"anthropic_key", "sk-ant-", nameBytes, 32, 0, 3},
	{"openai_key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1-", nameBytes, 32, 0, 3},
	{"openai_key", "sk-", alnumBytes, 40, 0, 3},
	{"stripe_key", "sk_live_ rk_live_ sk_test_ rk_test_", alnumBytes, 20, 0, 3},
	{"webhook_secret", "whsec_", base64Bytes, 24, 0, 3},
	{"google_api_key", "AIza", nameBytes, 35, 35, 3},
	{"google_oauth", "GOCSPX-", nameBytes, 28, 28, 3},
	{"google_oauth", "ya29.", nameBytes, 30, 0, 3},
	{"sendgrid_key", "SG.", dottedBytes, 60, 0, 3},
	{"npm_token", "npm_", alnumBytes, 36, 36, 3},
	{"pypi_token", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw", nameBytes, 50, 0, 3},
	{"huggingface_token", "hf_", alnumBytes, 34, 40, 3},
	{"digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", hexBytes, 64, 64, 3},
	{"shopify_token", "shpat_ shpca_ shppa_ shpss_", bytesIn("0-9A-Fa-f"), 32, 32, 3},
	{"vault_token", "hvs. hvb. hvr.", nameBytes, 24, 0, 3},
	{"databricks_token", "dapi", hexBytes, 32, 32, 3},
	{"mailgun_key", "key-", hexBytes, 32, 32, 3},
	{"linear_key", "lin_api_", alnumBytes, 40, 0, 3},
	{"postman_key", "PMAK-", bytesIn("0-9a-f-"), 59, 59, 3},
	{"square_token", "sq0atp- sq0csp-", nameBytes, 22, 0, 3},
	{"age_key", "AGE-SECRET-KEY-1", bytesIn("0-9A-Z"), 58, 58, 3},
}

// issued are the detectors of credentials that tell who has issued them.
var (
	issued    = append(prefixDetectors(), detector{"jwt", "e", "eyJ", jwt})
	issuedSet = newRuleSet(issued)
)

func prefixDetectors() (list []detector) {
	for _, rule := range prefixRules {
		for prefix := range strings.FieldsSeq(rule.prefixes) {
			list = append(list, detector{rule.rule, prefix[:1], prefix, rule.matcher(len(prefix))})
		}
	}
	return list
}

// longest is how much of a credential is looked at to judge it.
const longest = 512

func (p prefixRule) matcher(prefix int) func(s string, at int) (start, end int) {
	return func(s string, at int) (int, int) {
		from := at + prefix
		end := p.rest.run(s, from, longest)
		for end > from && !alnumBytes[s[end-1]] && s[end-1] != '=' {
			end-- // a full stop after it
		}
		n := end - from
		if n < p.least || p.most > 0 && (n > p.most || wordAt(s, end)) || placeholder(s[from:end]) || entropy(s[from:end]) < p.entropy {
			return 0, 0
		}
		if n >= longest-1 {
			end = p.rest.run(s, end, len(s))
		}
		return at, end
	}
}

// placeholder reports whether a value is one that documentation shows: it says
// so, or is words without a digit.
func placeholder(value string) bool {
	const letters = "EXAMPLE"
	digit := false
	for i := range len(value) {
		digit = digit || digitBytes[value[i]]
		if tail := value[i:]; len(tail) >= len(letters) && strings.EqualFold(tail[:len(letters)], letters) {
			return true
		}
	}
	return !digit && len(value) < 80
}

// entropy returns the bits that each byte of s carries, by how often each value
// of a byte occurs in it (Shannon 1948).
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			sum += float64(n) * math.Log2(float64(n))
		}
	}
	return math.Log2(float64(len(s))) - sum/float64(len(s))
}

// random reports whether a value looks like one that a machine has drawn: of
// letters of both cases and digits, or with many digits.
func random(value string) bool {
	var lower, upper, digits int
	for i := range len(value) {
		switch c := value[i]; {
		case lowerBytes[c]:
			lower++
		case upperBytes[c]:
			upper++
		case digitBytes[c]:
			digits++
		}
	}
	if lower+upper == 0 || digits == 0 || placeholder(value) {
		return false
	}
	return lower > 0 && upper > 0 && digits > 1 && entropy(value) >= 3.5 || digits*5 >= len(value) && entropy(value) >= 3
}

// secretNames are in the names of things that hold secrets.
var secretNames = []string{"password", "passwd", "passphrase", "secret", "apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key", "authkey", "auth_key", "credential"}

// maxName is the longest name of a value, in bytes.
const maxName = 64

// namedSecret finds a value after a name that says what it is:
// api_key = "…", password: ….
func namedSecret(s string, at int) (start, end int) {
	stop := at
	for stop > 0 && at-stop < 3 && strings.IndexByte(" \t\"'`:", s[stop-1]) >= 0 {
		stop--
	}
	begin := stop
	for begin > 0 && stop-begin < maxName && nameBytes[s[begin-1]] {
		begin--
	}
	name := strings.ReplaceAll(strings.ToLower(s[begin:stop]), "-", "_")
	named := strings.HasSuffix(name, "token")
	for _, n := range secretNames {
		named = named || strings.Contains(name, n)
	}
	if !named {
		return 0, 0
	}
	start = at + 1
	for start < len(s) && start-at < 6 && strings.IndexByte(" \t\"'`=>\n", s[start]) >= 0 {
		start++
	}
	return value(s, start)
}

// bearer finds the token of an Authorization header.
func bearer(s string, at int) (start, end int) {
	const word = "bearer "
	if len(s)-at < len(word) || !strings.EqualFold(s[at:at+len(word)], word) {
		return 0, 0
	}
	return value(s, at+len(word))
}

// value returns where a value is that looks random, if there is one. Where a
// rule can say what it is, that one is to.
func value(s string, start int) (_, end int) {
	if start < len(s) {
		for _, d := range issuedSet.at()[s[start]] {
			if _, end := d.match(s, start); strings.HasPrefix(s[start:], d.whole) && end > 0 {
				return 0, 0
			}
		}
	}
	end = valueBytes.run(s, start, longest)
	for end > start && s[end-1] == '.' {
		end--
	}
	if end-start < 16 || !random(s[start:end]) {
		return 0, 0
	}
	if end-start >= longest-1 {
		end = valueBytes.run(s, end, len(s))
	}
	return start, end
}

// privateKey finds a block of PEM or OpenPGP, or the beginning of one.
func privateKey(s string, at int) (start, end int) {
	label := at + len("-----BEGIN ")
	body := labelBytes.run(s, label, 60)
	kind := s[label:body]
	if !strings.HasSuffix(kind, "PRIVATE KEY") && !strings.HasSuffix(kind, "PRIVATE KEY BLOCK") || !strings.HasPrefix(s[body:], "-----") {
		return 0, 0
	}
	body += len("-----")
	end = bodyBytes.run(s, body, len(s))
	if n := len(strings.Join(strings.Fields(strings.ReplaceAll(s[body:min(end, body+200)], `\n`, "\n")), "")); n < 24 {
		return 0, 0 // somebody talks about keys
	}
	if foot := strings.Index(s[end:min(len(s), end+80)], kind+"-----"); foot >= 0 && strings.HasPrefix(s[end:], "-----END ") {
		end += foot + len(kind) + len("-----")
	}
	return at, end
}

var (
	labelBytes = bytesIn("0-9A-Z ")
	// bodyBytes are those of a block but for the hyphen. Encrypted blocks begin
	// with headers in plain text.
	bodyBytes = bytesIn("0-9A-Za-z+/=\\:,. \t\r\n")
)

// jwt finds a signed JSON Web Token: three parts in base64, the first two of them
// objects.
func jwt(s string, at int) (start, end int) {
	head := nameBytes.run(s, at, 4*longest)
	if head-at < 16 || !strings.HasPrefix(s[head:], ".eyJ") {
		return 0, 0
	}
	claims := nameBytes.run(s, head+1, 1<<16)
	if claims-head < 16 || claims >= len(s) || s[claims] != '.' {
		return 0, 0
	}
	end = nameBytes.run(s, claims+1, 4*longest)
	if end-claims < 24 {
		return 0, 0
	}
	return at, end
}

// urlPassword finds the password in an address such as
// postgres://user:password@host.
func urlPassword(s string, at int) (start, end int) {
	if at == 0 || !alnumBytes[s[at-1]] {
		return 0, 0
	}
	user := userBytes.run(s, at+3, 128)
	if user == len(s) || s[user] != ':' {
		return 0, 0
	}
	start = user + 1
	end = passwordBytes.run(s, start, 256)
	if end == len(s) || s[end] != '@' || !wordAt(s, end+1) && !strings.HasPrefix(s[end+1:], "[") {
		return 0, 0
	}
	if end-start < 8 || placeholder(s[start:end]) || entropy(s[start:end]) < 2.5 {
		return 0, 0
	}
	return start, end
}

var (
	userBytes     = bytesIn("0-9A-Za-z_.%+~-")
	passwordBytes = bytesIn("!#-.0-9:;=?A-Z_a-z~$%&*+")
)
