package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/notify"
)

// TestDescribed: docs/notifications.md has each kind of message, in the words of the reference,
// and shows a message as it is sent.
func TestDescribed(t *testing.T) {
	text, err := os.ReadFile("../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| type | when |\n|---|---|\n"
	for _, k := range notify.Kinds() {
		table += fmt.Sprintf("| `%s` | %s |\n", k.Name, k.When)
	}
	if !strings.Contains(string(text), table+"\n") {
		t.Errorf("docs/notifications.md does not have\n%s", table)
	}
	_, shown, _ := strings.Cut(string(text), "```json\n")
	shown, _, _ = strings.Cut(shown, "```")
	var m api.Message
	d := json.NewDecoder(strings.NewReader(shown))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, []byte(strings.TrimSpace(shown))) {
		t.Errorf("the message is shown as\n%s\nand is\n%s", shown, again)
	}
}
