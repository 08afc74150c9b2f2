package agenttest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// installed are the programs that .ci/agents installs.
var installed = map[string]string{
	"claude": "@anthropic-ai/claude-code-linux-x64/claude",
	"codex":  "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
	"acp":    "opencode-linux-x64/bin/opencode",
}

// Program returns the path of an agent's program, claude, codex or acp (OpenCode): the one that
// DIALAI_<NAME>_BIN names, or DIALAI_ACP_AGENT, else that of .ci/agents. Where there is none the test is skipped; with DIALAI_REQUIRE_AGENTS=1 it
// fails.
func Program(t testing.TB, name string) string {
	t.Helper()
	variable := "DIALAI_" + strings.ToUpper(name) + "_BIN"
	if name == "acp" {
		variable = "DIALAI_ACP_AGENT"
	}
	if path := os.Getenv(variable); path != "" {
		return path
	}
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../../.tools/agents/node_modules", installed[name])
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("DIALAI_REQUIRE_AGENTS") == "1" {
		t.Fatalf("no %s binary: run .ci/agents, or set %s", name, variable)
	}
	t.Skipf("no %s binary: run .ci/agents, or set %s", name, variable)
	return ""
}

// ClaudeEnv returns the environment in which Claude Code asks a server instead of its provider,
// and nobody else. home must be a fresh folder.
func ClaudeEnv(s *Server, home string) []string {
	return []string{
		"HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(home, ".claude"), "ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_API_KEY=dummy",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}
}

// CodexEnv returns what Codex needs in its environment to ask a server of the test, for its
// configuration in a folder, which it writes there.
func CodexEnv(t testing.TB, s *Server, home string) []string {
	t.Helper()
	config := fmt.Sprintf("model = \"of-the-test\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"%s/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", s.URL)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "CODEX_HOME=" + home, "FAKE_KEY=dummy"}
}

// OpenCodeEnv returns what OpenCode needs in its environment to ask a server of the test, and
// nobody else, for its configuration in a folder, which it writes there.
func OpenCodeEnv(t testing.TB, s *Server, home string) []string {
	t.Helper()
	config := fmt.Sprintf(`{"model": "fake/of-the-test", "small_model": "fake/of-the-test", "autoupdate": false, "share": "disabled",
		"provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": %q, "apiKey": "dummy"},
			"models": {"of-the-test": {"name": "of the test", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}}}`, s.URL+"/v1")
	path := filepath.Join(home, "opencode.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home, "OPENCODE_CONFIG=" + path,
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
	}
}
