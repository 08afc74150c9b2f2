// Package codex drives Codex: its program, which speaks JSON lines on its standard streams when
// it is started as codex app-server. They are messages of JSON-RPC, without its version:
// requests, answers and notifications in both directions.
//
// A thread is a session. What is said while a turn runs is put into it (turn/steer), or kept
// here until it has ended. The program asks before commands and changes of files; that one was
// refused reaches the model without the reason, so that follows as a message. It has no hooks:
// after each use of a tool the host is asked as if it had, and its notice follows as a message,
// too. It tells what its requests used, and not what they cost. Subagents are switched off.
// Compaction cannot be: the ceiling is where it begins, and it is told when it has happened.
package codex

import (
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/hosttools"
	"github.com/dialai/dialai/agent/internal/process"
)

// An Agent is a program of Codex. It may be used concurrently.
type Agent struct {
	path string
	env  []string
}

// New returns the agent whose program is at path; "" is the one that PATH finds as codex.
// Each NAME=VALUE of env is in the environment of its sessions, and of Check.
func New(path string, env ...string) *Agent {
	if path == "" {
		path = "codex"
	}
	return &Agent{path: path, env: env}
}

var capabilities = agent.Capabilities{
	Resume: true, HookNotice: true, LiveUsage: true, Permission: true,
	SubagentIDs: true, SpawnLimits: true, // there are none
}

// Check starts the program, shakes hands, and ends it.
func (a *Agent) Check(ctx context.Context) (agent.Info, error) {
	s, err := a.start(ctx, agent.Spec{ID: "check-" + rand.Text()}, make(chan agent.Event))
	if err != nil {
		return agent.Info{}, err
	}
	s.queue.Drop()
	return s.info, s.process.Close(ctx, nil, false)
}

// Open starts the program and a thread, or goes on with one. Of the agent's own tools Bash,
// Edit or Write in spec.OwnTools let it change the working folder, once it was permitted; without
// them it can only read. It is not asked for its window before the first turn.
func (a *Agent) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	s, err := a.start(ctx, spec, events)
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		s.queue.Drop()
		_ = s.process.Close(context.Background(), nil, true)
		return nil, fmt.Errorf("codex: open %s: %w", spec.ID, err)
	}
	s.queue.Start(agent.Opened{Info: s.info, AgentSession: s.thread, Resumed: spec.Resume != ""})
	go s.watch()
	return s, nil
}

func (a *Agent) start(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (*session, error) {
	path, err := exec.LookPath(a.path)
	if err != nil {
		return nil, fmt.Errorf("codex: %w", err)
	}
	s := newSession(spec, events)
	s.process, err = process.Start(process.Config{
		Path: path, Args: arguments, Dir: spec.Cwd, Session: spec.ID, Env: slices.Concat(a.env, spec.Env),
		Line: s.line, Log: func(text string) { s.queue.Tell(agent.Log{Stream: "stderr", Text: text}) },
	})
	if err != nil {
		return nil, fmt.Errorf("codex: %w", err)
	}
	s.peer.Send, s.peer.Gone = s.process.Write, s.process.Gone()
	close(s.started)
	if err := s.greet(ctx); err != nil {
		s.queue.Drop()
		_ = s.process.Close(context.Background(), nil, true)
		return nil, fmt.Errorf("codex: %w", err)
	}
	return s, nil
}

// arguments switch off subagents, which could submit.
var arguments = []string{"app-server", "-c", "features.multi_agent=false"}

// greeting is how long the program may take to answer for the first time.
const greeting = time.Minute

func (s *session) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	var hello struct {
		UserAgent string `json:"userAgent"` // dialai/VERSION (…)
	}
	if err := s.peer.Wait(ctx, "initialize", map[string]any{"clientInfo": map[string]any{"name": "dialai", "title": "dialai", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true}}, &hello); err != nil {
		return err
	}
	_, rest, _ := strings.Cut(hello.UserAgent, "/")
	version, _, _ := strings.Cut(rest, " ")
	s.info = agent.Info{Agent: "codex", Version: version, Capabilities: capabilities}
	return s.peer.Notify("initialized", nil)
}

// enter starts the thread, or goes on with it.
func (s *session) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	params := map[string]any{"cwd": s.spec.Cwd, "approvalPolicy": "untrusted", "sandbox": sandbox(s.spec)}
	if s.spec.Model != "" {
		params["model"] = s.spec.Model
	}
	if s.spec.SystemPrompt != "" {
		params["developerInstructions"] = s.spec.SystemPrompt
	}
	method := "thread/start"
	if s.spec.Resume != "" {
		method, params["threadId"] = "thread/resume", s.spec.Resume
	} else {
		params["dynamicTools"] = tools(s.spec.Tools)
	}
	var r struct {
		Model  string `json:"model"`
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	}
	if err := s.peer.Wait(ctx, method, params, &r); err != nil {
		if s.spec.Resume != "" && strings.Contains(err.Error(), "no rollout found") {
			err = fmt.Errorf("%w: %w", agent.ErrUnknown, err)
		}
		return err
	}
	s.thread, s.info.Model = r.Thread.ID, r.Model
	return nil
}

func sandbox(spec agent.Spec) string {
	if spec.OwnTools == nil || slices.ContainsFunc(spec.OwnTools, func(t string) bool { return t == "Bash" || t == "Edit" || t == "Write" }) {
		return "workspace-write"
	}
	return "read-only"
}

func tools(served []agent.Tool) []any {
	list := []any{}
	for _, t := range served {
		list = append(list, map[string]any{"type": "function", "name": t.Name, "description": t.Description, "inputSchema": hosttools.Schema(t)})
	}
	return list
}
