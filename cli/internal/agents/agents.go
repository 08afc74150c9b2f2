package agents

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/acp"
	"github.com/dialai/dialai/agent/claude"
	codexagent "github.com/dialai/dialai/agent/codex"
	"github.com/dialai/dialai/agent/scripted"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/internal/files"
)

// The agents that can be driven, by the names that --agent and machines say.

// agentNamed returns an agent by its name.
func agentNamed(a *command.App, name string) (agent.Agent, error) {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "scripted":
		text, err := a.ReadFile(rest, files.Script)
		if err != nil {
			return nil, err
		}
		return scripted.New(rest, text)
	case claudeName:
		path, err := program(a, claudeName, "DIALAI_CLAUDE_BIN")
		return claude.New(path), err
	case codex:
		path, err := program(a, codex, "DIALAI_CODEX_BIN")
		return codexagent.New(path), err
	case acpName:
		words, err := shell.Fields(rest, a.Env)
		if err != nil || len(words) == 0 {
			return nil, command.Hinted(command.Usage("the agent %q names no program", name), "acp:COMMAND ARGS, such as \"acp:opencode acp\"")
		}
		return acp.New([]string{self(), "agents", "relay"}, words), nil
	case "dialai":
		return nil, nil // asked like the others, and answered by the loop
	}
	return nil, command.Hinted(command.Usage("there is no agent %q", name), "claude, codex, acp:COMMAND, or scripted:FILE, which follows a script")
}

// program returns the path of an agent's program.
func program(a *command.App, name, variable string) (string, error) {
	path, err := exec.LookPath(cmp.Or(a.Env(variable), name))
	if err != nil {
		return "", command.Hinted(fmt.Errorf("the program of the agent %s is not there: %w", name, err), "install it, or let %s name it; scripted:FILE needs none", variable)
	}
	return path, nil
}
