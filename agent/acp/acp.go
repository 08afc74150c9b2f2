// Package acp drives any agent that speaks the Agent Client Protocol, version 1: JSON-RPC 2.0 on
// the standard streams of its program (https://agentclientprotocol.com).
//
// A prompt is a turn, and nothing can be put into one that runs: a message waits for its end. The
// agent asks before it uses a tool, if it asks at all, and a refusal has no words: the reason goes
// with the next prompt. Tools of the host reach the agent as a server of MCP, whose program is a
// relay to a socket of this process (mcp.go). Subagents are not told apart, compaction is not
// told, and how full the context is only by agents that say so.
package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
	"github.com/dialai/dialai/agent/internal/rpc"
)

// An Agent is a program that speaks the protocol. It may be used concurrently.
type Agent struct {
	relay, command, env []string
}

// New returns the agent whose program is command, with its arguments. relay is the program, with
// its arguments, that calls [Relay]: this one, as a rule. Each NAME=VALUE of env is in the
// environment of its sessions, and of Check.
func New(relay, command []string, env ...string) *Agent {
	return &Agent{relay: relay, command: command, env: env}
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

// Open starts the program and a session, or goes on with one, if the agent can. Which of its own
// tools it uses unasked is up to its configuration; what it asks for and spec.OwnTools does not name
// is refused, by the kinds of the protocol.
func (a *Agent) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	s, err := a.start(ctx, spec, events)
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx, a.relay); err != nil {
		s.queue.Drop()
		s.served.close()
		_ = s.process.Close(context.Background(), nil, true)
		return nil, fmt.Errorf("acp: open %s: %w", spec.ID, err)
	}
	s.queue.Start(agent.Opened{Info: s.info, AgentSession: s.session, Resumed: spec.Resume != ""})
	go s.watch()
	return s, nil
}

func (a *Agent) start(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (*session, error) {
	if len(a.command) == 0 {
		return nil, errors.New("acp: no program is named: acp:COMMAND ARGS")
	}
	path, err := exec.LookPath(a.command[0])
	if err != nil {
		return nil, fmt.Errorf("acp: %w", err)
	}
	s := newSession(spec, events)
	s.process, err = process.Start(process.Config{
		Path: path, Args: a.command[1:], Dir: spec.Cwd, Session: spec.ID, Env: slices.Concat([]string{asks}, a.env, spec.Env),
		Line: s.line, Log: func(text string) { s.queue.Tell(agent.Log{Stream: "stderr", Text: text}) },
	})
	if err != nil {
		return nil, fmt.Errorf("acp: %w", err)
	}
	s.peer.Send, s.peer.Gone = s.process.Write, s.process.Gone()
	close(s.started)
	if err := s.greet(ctx); err != nil {
		s.queue.Drop()
		_ = s.process.Close(context.Background(), nil, true)
		return nil, fmt.Errorf("acp: %s: %w", a.command[0], err)
	}
	return s, nil
}

// capabilities are those of an agent that can go on with a session.
var capabilities = agent.Capabilities{Resume: true, Permission: true}

// asks has OpenCode ask before it uses a tool, which it does not do by itself, start no subagents,
// which are not told apart, and ask its user nothing (its environment may have it do so), since the
// protocol has no way to answer. Other programs do not know it.
const asks = `OPENCODE_PERMISSION={"*":"ask","dialai_*":"allow","task":"deny","question":"deny"}`

const (
	version  = 1           // of the protocol
	greeting = time.Minute // the program may take to answer for the first time
)

func (s *session) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	var hello struct {
		ProtocolVersion int `json:"protocolVersion"`
		Agent           struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"agentInfo"`
		Capabilities struct {
			Load    bool `json:"loadSession"`
			Session struct {
				Resume *struct{} `json:"resume"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	if err := s.peer.Wait(ctx, "initialize", map[string]any{"protocolVersion": version, "clientInfo": map[string]any{"name": "dialai", "version": "1"},
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false}}, &hello); err != nil {
		return err
	}
	if hello.ProtocolVersion != version {
		return fmt.Errorf("the program speaks version %d of the protocol, and only %d is known", hello.ProtocolVersion, version)
	}
	s.resumes, s.loads = hello.Capabilities.Session.Resume != nil, hello.Capabilities.Load
	s.info = agent.Info{Agent: "acp", Version: strings.TrimSpace(hello.Agent.Name + " " + hello.Agent.Version), Capabilities: capabilities}
	s.info.Capabilities.Resume = s.resumes || s.loads
	return nil
}

// enter starts the session, or goes on with it.
func (s *session) enter(ctx context.Context, relay []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	servers := []any{}
	if len(s.spec.Tools) > 0 {
		if s.served, err = serve(s); err != nil {
			return err
		}
		servers = append(servers, map[string]any{"name": "dialai", "command": relay[0], "args": relay[1:], "env": s.served.env()})
	}
	params := map[string]any{"cwd": s.spec.Cwd, "mcpServers": servers}
	if s.spec.Resume == "" {
		return s.fresh(ctx, params)
	}
	params["sessionId"] = s.spec.Resume
	method := "session/load"
	switch {
	case s.resumes:
		method = "session/resume"
	case !s.loads:
		return fmt.Errorf("%w: the program goes on with none", agent.ErrUnknown)
	}
	s.mu.Lock()
	s.session, s.replays = s.spec.Resume, true // what it says of before is not told again
	s.mu.Unlock()
	var r entered
	if err := s.peer.Wait(ctx, method, params, &r); err != nil {
		if isUnknown(err) {
			err = fmt.Errorf("%w: %w", agent.ErrUnknown, err)
		}
		return err
	}
	s.mu.Lock()
	s.replays = false
	s.mu.Unlock()
	s.info.Model = r.model()
	return s.choose(ctx)
}

// choose has the session use the model that the host wants.
func (s *session) choose(ctx context.Context) error {
	if s.spec.Model == "" || s.spec.Model == s.info.Model {
		return nil
	}
	var none struct{}
	if err := s.peer.Wait(ctx, "session/set_model", map[string]any{"sessionId": s.session, "modelId": s.spec.Model}, &none); err != nil {
		return fmt.Errorf("the model %s: %w", s.spec.Model, err)
	}
	s.info.Model = s.spec.Model
	return nil
}

// An entered session has a model: one of its models, or a value of its configuration.
type entered struct {
	Session string `json:"sessionId"`
	Models  struct {
		Current string `json:"currentModelId"`
	} `json:"models"`
	Options []struct {
		Category string          `json:"category"`
		Value    json.RawMessage `json:"currentValue"`
	} `json:"configOptions"`
}

func (e entered) model() string {
	name := e.Models.Current
	for _, o := range e.Options {
		if o.Category == "model" && name == "" {
			_ = json.Unmarshal(o.Value, &name) // what is no name is not known
		}
	}
	return name
}

func (s *session) fresh(ctx context.Context, params map[string]any) error {
	var r entered
	if err := s.peer.Wait(ctx, "session/new", params, &r); err != nil {
		return err
	}
	if r.Session == "" {
		return errors.New("session/new: the program names no session")
	}
	s.mu.Lock()
	s.session, s.persona = r.Session, s.spec.SystemPrompt
	s.mu.Unlock()
	s.info.Model = r.model()
	return s.choose(ctx)
}

// notFound is the protocol's code of what is not there.
const notFound = -32002

// isUnknown reports whether an error says that there is no such session: by its code, or by its
// words, since not all programs have the code.
func isUnknown(err error) bool {
	var r *rpc.Refusal
	if !errors.As(err, &r) {
		return false
	}
	words := strings.ToLower(r.Message + " " + string(r.Data))
	return r.Code == notFound || strings.Contains(words, "not found") || strings.Contains(words, "no such session") || strings.Contains(words, "unknown session") || strings.Contains(words, `"service":"session"`)
}
