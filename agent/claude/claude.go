// Package claude drives Claude Code: its program, which speaks JSON lines on its standard
// streams when it is started with --input-format stream-json.
//
// Two conversations share the streams. Lines of type user, assistant, system and result are
// that with the model. Requests (control_request) go both ways: the host has the program
// interrupt a turn and tell how full its context is; the program asks whether it may use a
// tool, tells of hooks before and after tools, and calls the tools that the host serves, which
// it sees as a server of the Model Context Protocol named dialai. Every request is answered.
//
// How full the context is: what the newest request of the main thread sent, cached or not.
// Subagents have contexts of their own, which do not count; their costs do. The ceiling is
// where the program would compact the context, or refuse to go on, whichever comes first.
//
// Facts that this rests on were observed with version 2.1.330; claude_test.go looks for each in
// the version that it finds.
package claude

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// An Agent is a program of Claude Code. It may be used concurrently.
type Agent struct {
	path string
	env  []string
}

// New returns the agent whose program is at path; "" is the one that PATH finds as claude.
// Each NAME=VALUE of env is in the environment of its sessions, and of Check.
func New(path string, env ...string) *Agent {
	if path == "" {
		path = "claude"
	}
	return &Agent{path: path, env: env}
}

var capabilities = agent.Capabilities{
	Resume: true, HookNotice: true, BlockCompaction: true, Probe: true, LiveUsage: true, Cost: true,
	SubagentIDs: true, SpawnLimits: true, Permission: true,
}

// Check starts the program, has it tell its version, and ends it.
func (a *Agent) Check(ctx context.Context) (agent.Info, error) {
	events := make(chan agent.Event)
	s, err := a.Open(ctx, agent.Spec{ID: "check-" + newUUID(), OwnTools: []string{}}, events)
	if err != nil {
		return agent.Info{}, err
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	var info agent.Info
	for e := range events {
		switch b := e.Body.(type) {
		case agent.Opened:
			info = b.Info
		case agent.Exited:
			return info, <-closed
		}
	}
	return info, nil
}

// Open starts the program.
func (a *Agent) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	path, err := exec.LookPath(a.path)
	if err != nil {
		return nil, fmt.Errorf("claude: %w", err)
	}
	s := newSession(spec, events)
	s.process, err = process.Start(process.Config{
		Path: path, Args: arguments(spec, s.id), Dir: spec.Cwd, Session: spec.ID,
		Env: append(append(append([]string{}, a.env...), spec.Env...), always...), Without: never,
		Line: s.line, Log: func(text string) { s.log("stderr", text) },
	})
	if err != nil {
		return nil, fmt.Errorf("claude: %w", err)
	}
	s.send = s.process.Write
	close(s.started)
	if err := s.greet(ctx); err != nil {
		s.queue.Drop()
		_ = s.process.Close(context.Background(), nil, true)
		return nil, fmt.Errorf("claude: open %s: %w", spec.ID, s.reason(err))
	}
	s.queue.Start(s.opened())
	go s.watch()
	return s, nil
}

// always is in the environment of every session. Subagents that run in the background would go
// on when a turn has ended.
var always = []string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "DISABLE_AUTOUPDATER=1"}

// never are names that a program started by Claude Code itself finds, and takes for its own.
var never = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT"}

// compactAt is where the program is to compact: it takes that of its model's window if that is
// smaller. Without the flag some models never do, nor ask.
const compactAt = "1000000"

func arguments(spec agent.Spec, id string) []string {
	args := []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--permission-prompt-tool", "stdio", "--forward-subagent-text", "--setting-sources", "project", "--strict-mcp-config",
		"--system-prompt-snapshot", "off", // with one, a resumed session keeps the prompt that it began with
		"--autocompact", compactAt}
	if spec.SystemPrompt != "" {
		args = append(args, "--append-system-prompt", spec.SystemPrompt)
	}
	if spec.Model != "" {
		args = append(args, "--model", spec.Model)
	}
	if spec.OwnTools != nil {
		args = append(args, "--tools", strings.Join(spec.OwnTools, ","))
	}
	if spec.Resume != "" {
		return append(args, "--resume", id)
	}
	return append(args, "--session-id", id)
}

// greeting is how long the program may take to answer for the first time.
const greeting = time.Minute

// greet shakes hands and learns what the session's opening tells.
func (s *session) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	hook := func(id string) any { return []any{map[string]any{"hookCallbackIds": []string{id}}} }
	var hello struct {
		Version string `json:"claude_code_version"`
	}
	if err := s.request(ctx, map[string]any{"subtype": "initialize", "sdkMcpServers": []string{server},
		"hooks": map[string]any{"PreToolUse": hook(hookBefore), "PostToolUse": hook(hookAfter), "PreCompact": hook(hookCompact)},
	}, &hello); err != nil {
		return err
	}
	s.mu.Lock()
	s.version = hello.Version
	s.mu.Unlock()
	_, err := s.Usage(ctx)
	return err
}

// reason makes an error of opening say what the program said.
func (s *session) reason(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == "" {
		return err
	}
	if strings.Contains(s.refused, "No conversation found") {
		return fmt.Errorf("%w: %s", agent.ErrUnknown, s.refused)
	}
	return errors.New(s.refused)
}

func (s *session) opened() agent.Opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return agent.Opened{
		Info:         agent.Info{Agent: "claude", Version: s.version, Model: s.model, Capabilities: capabilities},
		AgentSession: s.id, Window: s.meter.usage.Window, Ceiling: s.meter.usage.Ceiling, Resumed: s.spec.Resume != "",
	}
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// encode is the JSON of what is ours, which always has one.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("claude: %v", err))
	}
	return text
}
