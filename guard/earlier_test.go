package guard_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
)

// TestEarlierDrafts (C9.1): a section of a machine that lists items is refused, one that
// a store holds is read, and one of the profile compat checks as draft 7 does.
func TestEarlierDrafts(t *testing.T) {
	section := []byte(`{"schema":{"properties":{"list":{"items":[{"type":"string"}]}}}}`)
	problems := guard.Check(section, false)
	if len(problems) != 1 || problems[0].Path != "/schema/properties/list/items" || !strings.Contains(problems[0].Message, "prefixItems") {
		t.Errorf("the problems are %+v", problems)
	}
	stored, problems := guard.ParseStored(section)
	if len(problems) > 0 || stored.Schema.Validate([]byte(`{"list":[1]}`)) != nil {
		t.Errorf("stored: %+v", problems)
	}
	compat, problems := guard.ParseAs(section, guard.Compat)
	if len(problems) > 0 || compat.Schema.Validate([]byte(`{"list":[1]}`)) == nil || compat.Schema.Validate([]byte(`{"list":["a"]}`)) != nil {
		t.Errorf("compat: %+v", problems)
	}
}
