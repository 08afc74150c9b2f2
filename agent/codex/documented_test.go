package codex

import (
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

func TestDocumented(t *testing.T) { agenttest.Documented(t, "codex", capabilities) }
