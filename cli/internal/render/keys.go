package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/specialist"
)

// MadeKey prints a key that was made.
func (st Style) MadeKey(out io.Writer, k api.MadeKey) error {
	switch {
	case st.JSON:
		return JSON(out, k)
	case st.Quiet:
		_, err := fmt.Fprintln(out, k.Credential)
		return err
	}
	until := ""
	if k.ExpiresAt != nil {
		until = ", until " + k.ExpiresAt.String()
	}
	_, err := fmt.Fprintf(out, "%s\n\nThis is the key of %s. It is shown this once: only a hash of it is kept.\n  id %s: %s%s\n", k.Credential, Clean(k.Name), k.KeyID, Clean(grantsOf(k.Key)), until)
	return err
}

// Keys prints a list of keys.
func (st Style) Keys(out io.Writer, keys []api.Key, now specialist.Time) error {
	return list(st, out, keys, "No keys.", []string{"KEY", "NAME", "TENANT", "GRANTS", "STATUS", "UNTIL", "USED"}, func(k api.Key) []string {
		until, used := "", "never"
		if k.ExpiresAt != nil {
			until = k.ExpiresAt.String()
		}
		if k.RevokedAt != nil && (k.ExpiresAt == nil || *k.RevokedAt < *k.ExpiresAt) {
			until = k.RevokedAt.String()
		}
		if k.LastUsed != nil {
			used = Age(now, *k.LastUsed)
		}
		return []string{k.KeyID, k.Name, k.Tenant, grantsOf(k), k.Status, until, used}
	})
}

// grantsOf says what a key may do.
func grantsOf(k api.Key) string {
	var texts []string
	for _, g := range k.Grants {
		text := string(g.Role)
		if as := append(append([]string{}, g.Humans...), g.Specialists...); len(as) > 0 {
			text += " " + strings.Join(as, ", ")
		}
		texts = append(texts, text+" of "+strings.Join(g.Machines, ", "))
	}
	return strings.Join(texts, "; ")
}

// Revoked prints a key that was revoked.
func (st Style) Revoked(out io.Writer, k api.Key, now specialist.Time) error {
	switch {
	case st.JSON:
		return JSON(out, k)
	case st.Quiet:
		return nil
	}
	_, err := fmt.Fprintf(out, "Key %s of %s is revoked%s.\n", k.KeyID, Clean(k.Name), Either(*k.RevokedAt > now, " from "+k.RevokedAt.String()+" on", ""))
	return err
}
