package control

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/dialai/dialai/specialist"
)

// A credential is what its owner sends: dk_ID_SECRET_SUM. ID names the key, SECRET is 256
// random bits, SUM is a checksum that notices typing errors. It is shown once; a Key keeps
// its SHA-256 only. Whoever reads that can neither use nor guess it, so there is no need for
// a slow hash.

const (
	prefix    = "dk_"
	idSize    = 12 // characters
	secretAt  = len(prefix) + idSize + 1
	sumAt     = secretAt + 43 + 1
	size      = sumAt + 8
	idLetters = "0123456789abcdefghjkmnpqrstvwxyz" // without i, l, o, u, as they are misread
)

// ErrCredential is wrapped where a credential does not have the form of one.
var ErrCredential = errors.New("not a key of a dialai server")

// NewCredential makes a credential from 44 random bytes. It panics if they cannot be read.
func NewCredential(random io.Reader) (id, credential string) {
	var b [idSize + 32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		panic(err)
	}
	for i := range idSize {
		b[i] = idLetters[b[i]%byte(len(idLetters))] // which divides 256
	}
	id = string(b[:idSize])
	text := prefix + id + "_" + base64.RawURLEncoding.EncodeToString(b[idSize:])
	return id, text + "_" + sumOf(text)
}

func sumOf(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// CredentialID returns the id of the key that a credential claims to be of. It checks the
// form alone; the errors wrap ErrCredential and repeat nothing of the credential.
func CredentialID(credential string) (string, error) {
	switch {
	case !strings.HasPrefix(credential, prefix):
		return "", fmt.Errorf("%w: it does not begin with %s", ErrCredential, prefix)
	case len(credential) != size:
		return "", fmt.Errorf("%w: it has %d characters instead of %d; copy it whole", ErrCredential, len(credential), size)
	}
	id := credential[len(prefix) : len(prefix)+idSize]
	_, err := base64.RawURLEncoding.Strict().DecodeString(credential[secretAt : sumAt-1])
	switch {
	case err != nil || credential[secretAt-1] != '_' || credential[sumAt-1] != '_' || strings.Trim(id, idLetters) != "":
		return "", fmt.Errorf("%w: a character in it is none that one has; copy it whole", ErrCredential)
	case sumOf(credential[:sumAt-1]) != credential[sumAt:]:
		return "", fmt.Errorf("%w: its checksum is wrong, so a character is; copy it whole", ErrCredential)
	}
	return id, nil
}

// A Hash is a SHA-256. Its text is "sha256:" and 64 hex digits.
type Hash [sha256.Size]byte

// HashOf returns the hash of a text: of a credential, for Key.Hash, or of a body.
func HashOf[T string | []byte](text T) Hash { return sha256.Sum256([]byte(text)) }

const hashPrefix = "sha256:"

// String returns the text of a hash.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hash) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), hashPrefix)
	data, err := hex.DecodeString(digits)
	if !ok || err != nil || len(data) != len(h) {
		return fmt.Errorf("%q is not %s and %d hex digits", text, hashPrefix, 2*len(h))
	}
	copy(h[:], data)
	return nil
}

// A Key is what is kept of a credential.
type Key struct {
	ID        string
	Name      string // for whom it is, in their own words
	Hash      Hash   // of the credential
	Tenant    string
	Grants    []Grant
	CreatedBy string // the subject
	CreatedAt specialist.Time
	ExpiresAt specialist.Time // it is refused from then on; 0 means never
	RevokedAt specialist.Time // it is refused from then on; 0 means not revoked
	LastUsed  specialist.Time // the hour; 0 means never
	Place     int64           // among all keys; Commit ignores it
}

// Why a key does not admit a request.
var (
	ErrSecret  = errors.New("the key is known, its secret is another")
	ErrRevoked = errors.New("the key is revoked")
	ErrExpired = errors.New("the key has expired")
)

// Admit returns nil if a credential is that of the key and good at a moment; else ErrSecret,
// ErrRevoked or ErrExpired. How long it takes says nothing about the secret.
func (k *Key) Admit(credential string, now specialist.Time) error {
	hash := HashOf(credential)
	switch {
	case subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 0:
		return ErrSecret
	case k.RevokedAt != 0 && now >= k.RevokedAt:
		return ErrRevoked
	case k.ExpiresAt != 0 && now >= k.ExpiresAt:
		return ErrExpired
	}
	return nil
}

// Successor returns a key that may do what k may, for as long as k could when it was made, from
// a moment on. ID, Hash and who has made it are for the caller to say.
func (k *Key) Successor(at specialist.Time) Key {
	next := Key{Name: k.Name, Tenant: k.Tenant, Grants: k.clone().Grants, CreatedAt: at}
	if k.ExpiresAt != 0 {
		next.ExpiresAt = at + k.ExpiresAt - k.CreatedAt
	}
	return next
}

// clone returns a copy that shares nothing.
func (k Key) clone() Key {
	k.Grants = slices.Clone(k.Grants)
	for i, g := range k.Grants {
		k.Grants[i] = Grant{g.Role, slices.Clone(g.Machines), slices.Clone(g.Humans), slices.Clone(g.Specialists), g.Elicit}
	}
	return k
}

// Hour returns the beginning of its hour: what Key.LastUsed says.
func (k KeyTime) Hour() specialist.Time {
	const hour = 60 * 60 * 1000
	return k.At - ((k.At%hour)+hour)%hour
}

// A Role is what a principal may do. What each may is up to the server.
type Role string

// The roles.
const (
	Viewer     Role = "viewer"
	Operator   Role = "operator"
	Human      Role = "human"
	Specialist Role = "specialist"
	Auditor    Role = "auditor"
	Admin      Role = "admin"
)

var roles = []Role{Viewer, Operator, Human, Specialist, Auditor, Admin}

// A Grant says what a principal may do with which machines, as whom.
type Grant struct {
	Role        Role     `json:"role"`
	Machines    []string `json:"machines"`              // names; * stands for any characters
	Humans      []string `json:"humans,omitempty"`      // the ids it may rule as
	Specialists []string `json:"specialists,omitempty"` // the ids it may propose as
	// Elicit is ElicitForm if whoever fills in a form of the MCP client that has the key is the
	// human as whom it rules; "" if such a form proves nothing.
	Elicit string `json:"elicit,omitempty"`
}

// ElicitForm is the one value of Grant.Elicit.
const ElicitForm = "form"

// Check returns what is wrong with a grant, or nil.
func (g *Grant) Check() error {
	switch {
	case !slices.Contains(roles, g.Role):
		return fmt.Errorf("role %q: there are %s", g.Role, roleNames())
	case len(g.Machines) == 0:
		return errors.New(`machines: name at least one; "*" means all`)
	case slices.Contains(slices.Concat(g.Machines, g.Humans, g.Specialists), ""):
		return errors.New("machines, humans, specialists: none of them is \"\"")
	case g.Role == Human && len(g.Humans) == 0:
		return errors.New("humans: a grant of the role human names whom it may rule as")
	case g.Role == Specialist && len(g.Specialists) == 0:
		return errors.New("specialists: a grant of the role specialist names whom it may propose as")
	case g.Elicit != "" && g.Elicit != ElicitForm:
		return fmt.Errorf("elicit %q: there is %s", g.Elicit, ElicitForm)
	case g.Elicit != "" && len(g.Humans) == 0:
		return errors.New("elicit: it is for a grant that names whom it may rule as")
	case len(g.Humans) > 0 && g.Role != Human && g.Role != Admin:
		return fmt.Errorf("humans: only grants of the roles human and admin may rule, not %s", g.Role)
	case len(g.Specialists) > 0 && g.Role != Specialist:
		return fmt.Errorf("specialists: only grants of the role specialist may propose, not %s", g.Role)
	}
	return nil
}

func roleNames() string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// Covers reports whether a grant is for a machine.
func (g *Grant) Covers(machineName string) bool {
	return slices.ContainsFunc(g.Machines, func(glob string) bool { return matches(glob, machineName) })
}

// matches reports whether a name is of the form of a glob, in which * stands for any
// characters, and nothing else is special.
func matches(glob, name string) bool {
	parts := strings.Split(glob, "*")
	name, ok := strings.CutPrefix(name, parts[0])
	if len(parts) == 1 {
		return ok && name == ""
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(name, part) // the first place leaves most for the others
		name, ok = rest, ok && found
	}
	return ok && strings.HasSuffix(name, last)
}
