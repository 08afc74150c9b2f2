package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
)

// dialai permit: a coding agent's permission prompt becomes a session, and its outcome the
// answer (package permit). The agent starts this command: as a hook, once for each prompt,
// which comes on stdin and is answered on stdout; or as a server of MCP with one tool, for as
// long as the agent runs. Stdout belongs to the agent; what its user should know is on stderr.
//
// A hook that prints nothing leaves the prompt to the agent's own user. So whatever goes wrong
// behind the flags ends without a word on stdout, and with exit code 0: other codes mean
// something to agents. The tool has nobody to leave a prompt to: no answer is a refusal that
// says that the question is kept.

// Agents are the ones whose hooks are known.
const (
	claudeName = "claude"
	codex      = "codex"
)

// maxPrompt is how much of a prompt is read, in bytes.
const maxPrompt = 16 << 20

// permitFlags are those of permit.
type permitFlags struct {
	hook, mcp   bool
	agent       string
	allow, deny []string
	permissions string
	unanswered  string
	noWait      bool
	machine     string
}

// PermitCommand returns dialai permit, of a program of some version.
func PermitCommand(a *command.App, version string) *cobra.Command {
	f := &permitFlags{}
	cmd := &cobra.Command{
		Use:   "permit (--hook | --mcp)",
		Short: "Answer the permission prompts of a coding agent",
		Long: `Answer what a coding agent asks to be allowed. Each prompt is a session of the machine
permission: what patterns list is decided at once, rules and a model vote beside you, and
you decide until the record shows how far they can be left alone. What cannot be undone
(push, publish, credentials, removal outside the working folder) stays with you. Your
questions are in dialai inbox, and wherever else questions of the store are shown.

The agent starts this command. As a hook (--hook) it reads one prompt on stdin, and prints
the answer, or nothing, which leaves the prompt to the agent's own user. As a server of
MCP (--mcp) it has one tool, permit. dialai agents hooks prints the settings of a hook.

An allow holds once, for exactly this input of this session of the agent, for 24 hours. A
prompt that is asked again joins the question that is open, or takes what was allowed
since.

--unanswered says what becomes of a prompt that you have not answered in time: wait for
ever, deny=DURATION refuses and ends the question, park=DURATION keeps the question and
tells the agent that there is no answer yet. Silence never allows.

A pattern is the name of a tool (WebFetch), or that and what is asked for, whole or by its
beginning: "Bash(go test*)". A line of commands is allowed if each of them is, and denied
if one of them is; git stash is always denied, since all worktrees share one. A file of
--permissions has such lists, and may grow: {allow: [...], deny: [...]}. A mistake in a
pattern is an error with exit code 2, which refuses until it is mended.`,
		Example: `  dialai permit --hook --unanswered park=30m
  dialai permit --hook --allow "Bash(go test*)" --deny WebFetch
  dialai permit --mcp --permissions permissions.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := f.check(a)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if f.mcp {
				return f.serve(ctx, a, rules, version)
			}
			if err := f.answer(ctx, a, rules); err != nil {
				warn(a.Err, err.Error())
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.hook, "hook", false, "answer one prompt, which comes on stdin")
	flags.BoolVar(&f.mcp, "mcp", false, "answer prompts as a tool of MCP")
	flags.StringVar(&f.agent, "agent", claudeName, "whose prompts they are: `claude|codex`")
	flags.StringArrayVar(&f.allow, "allow", nil, "a `pattern` of what is allowed (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, "a `pattern` of what is denied (repeatable)")
	flags.StringVar(&f.permissions, "permissions", "", "the `file` with patterns of what is allowed and denied")
	flags.StringVar(&f.unanswered, "unanswered", "", "`wait`, deny=DURATION or park=DURATION (default: park=0s as a hook, else park=30m)")
	flags.BoolVar(&f.noWait, "no-wait", false, "refuse at once what nobody but a human can answer")
	flags.StringVar(&f.machine, "machine", "", "the machine `file` that decides (default: the sample permission)")
	cmd.MarkFlagsMutuallyExclusive("hook", "mcp")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "unanswered")
	command.Complete(cmd, "agent", claudeName, codex)
	return cmd
}

// check returns what is wrong with the flags, or the patterns that they list.
func (f *permitFlags) check(a *command.App) (rules permit.Rules, err error) {
	switch {
	case !f.hook && !f.mcp:
		return rules, command.Hinted(command.Usage("how does the agent ask? One of --hook and --mcp is needed"), "dialai agents hooks claude prints the settings to paste")
	case f.agent != claudeName && f.agent != codex:
		return rules, command.OneOf("agent", f.agent, claudeName, codex)
	}
	if _, _, err := f.patience(); err != nil {
		return rules, err
	}
	if f.permissions != "" {
		text, err := a.ReadFile(f.permissions, files.Permissions)
		if err != nil {
			return rules, err
		}
		if rules, err = permit.ParseRules(f.permissions, text); err != nil {
			return rules, command.Fail(command.ExitUsage, err)
		}
	}
	for _, of := range []struct {
		flag  string
		texts []string
		into  *[]permit.Pattern
	}{{"allow", f.allow, &rules.Allow}, {"deny", f.deny, &rules.Deny}} {
		for _, text := range of.texts {
			p, err := permit.ParsePattern(text)
			if err != nil {
				return rules, command.Usage("--%s %s: %v", of.flag, text, err)
			}
			*of.into = append(*of.into, p)
		}
	}
	return rules, nil
}

// patience reads what becomes of prompts that nobody answers, and when.
func (f *permitFlags) patience() (permit.Unanswered, time.Duration, error) {
	text := f.unanswered
	switch {
	case text != "":
	case f.noWait:
		text = "deny=0s"
	case f.hook:
		text = "park=0s"
	default:
		text = "park=30m"
	}
	if text == string(permit.Wait) {
		return permit.Wait, 0, nil
	}
	what, after, _ := strings.Cut(text, "=")
	d, err := time.ParseDuration(after)
	if u := permit.Unanswered(what); err == nil && d >= 0 && (u == permit.Refuse || u == permit.Park) {
		return u, d, nil
	}
	return "", 0, command.Hinted(command.Usage("--unanswered is %q", text), "wait, deny=DURATION or park=DURATION, such as park=30m")
}

// config opens the store and says how prompts are decided. end closes it.
func (f *permitFlags) config(ctx context.Context, a *command.App, rules permit.Rules) (c permit.Config, end func() error, err error) {
	e, err := a.EngineFor(ctx, command.Starts, nil, true)
	if err != nil {
		return c, nil, err
	}
	if c, err = f.configOn(a, e, rules); err != nil {
		return c, nil, errors.Join(err, e.Close())
	}
	return c, e.Close, nil
}

// configOn says how prompts are decided by an engine that is open: by its machine, without the
// models that cannot be asked here.
func (f *permitFlags) configOn(a *command.App, e *command.Engine, rules permit.Rules) (c permit.Config, err error) {
	name, text := f.machine, []byte(nil)
	if name == "" {
		name, text, _ = machines.Read("permission")
	} else if text, err = a.ReadFile(name, files.Machine); err != nil {
		return c, err
	}
	m, err := a.ParseMachine(name, text)
	if err != nil {
		return c, err
	}
	if text, changed, err := withoutModels(m, e.Models.Ready); err != nil {
		return c, err
	} else if changed {
		if m, err = a.ParseMachine(strings.TrimSuffix(name, filepath.Ext(name))+".json", text); err != nil {
			return c, err
		}
	}
	c = permit.Config{Runner: e.Runner, Machine: m, Actor: command.LocalActor(), Now: command.Clock, Settings: permit.Settings{Rules: rules, Home: a.Env("HOME"), Path: a.Env("PATH")}}
	c.Unanswered, c.After, _ = f.patience() // it was checked
	c.Waits = func(s *session.Session) {
		warn(a.Err, fmt.Sprintf("%s waits for you: %s", s.Subject(), a.Command("show", []string{s.ID.String()})))
	}
	return c, nil
}

// warn tells the agent's user something.
func warn(out io.Writer, text string) { fmt.Fprintln(out, "dialai permit: "+render.Clean(text)) }

// A hooked is a prompt as hooks of agents get it.
type hooked struct {
	SessionID, Cwd, Event, Tool string
	Input, Suggestions          json.RawMessage
}

// readHooked reads a prompt. Members have exactly these names: one that differs in case is
// another member, which may say something else.
func readHooked(text []byte) (in hooked, err error) {
	if text, err = jsontext.Tidy(text); err != nil {
		return in, err
	}
	o := jsontext.ReadObject(text)
	for name, into := range map[string]*string{"session_id": &in.SessionID, "cwd": &in.Cwd, "hook_event_name": &in.Event, "tool_name": &in.Tool} {
		if value := o.Get(name); value != nil {
			err = errors.Join(err, jsontext.Unmarshal(value, into))
		}
	}
	in.Input, in.Suggestions = o.Get("tool_input"), o.Get("permission_suggestions")
	return in, err
}

// answer answers the prompt on stdin, or leaves it to the agent's user.
func (f *permitFlags) answer(ctx context.Context, a *command.App, rules permit.Rules) error {
	text, err := io.ReadAll(io.LimitReader(a.In, maxPrompt+1))
	if err != nil {
		return err
	}
	if len(text) > maxPrompt {
		return fmt.Errorf("the prompt has more than %d MiB", maxPrompt>>20)
	}
	in, err := readHooked(text)
	switch {
	case err != nil:
		return fmt.Errorf("stdin holds no prompt of an agent: %w", err)
	case in.Tool == "" || in.SessionID == "":
		return errors.New("stdin holds no prompt of an agent: it has no tool_name or no session_id")
	case in.Event != "" && in.Event != event:
		return fmt.Errorf("this is a hook for %s, not for %s", event, in.Event)
	}
	p := permit.Prompt{Agent: f.agent, AgentSession: in.SessionID, Tool: in.Tool, Input: in.Input, Cwd: in.Cwd, Suggestions: in.Suggestions}
	answer, err := f.inTime(ctx, func(ctx context.Context) (permit.Answer, error) {
		c, end, err := f.config(ctx, a, rules)
		if err != nil {
			return permit.Answer{}, err
		}
		answer, err := c.Ask(ctx, p)
		return answer, errors.Join(err, end())
	})
	if err != nil {
		return err
	}
	decision, err := f.decision(p, answer)
	if err != nil || decision == nil {
		return err
	}
	return render.JSON(a.Out, map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": event, "decision": decision}})
}

// How much later than it was asked for a refusal may come, if what is waited for is the store,
// and how long a store has where a refusal is asked for at once.
const (
	overdue  = 200 * time.Millisecond
	storeHas = 3 * time.Second
)

// inTime answers as ask does. Where time that is up means no, it refuses then, whatever ask is
// doing, since a store that somebody else holds waits on its own: ask is told to end, and not
// waited for.
func (f *permitFlags) inTime(ctx context.Context, ask func(context.Context) (permit.Answer, error)) (permit.Answer, error) {
	what, after, _ := f.patience() // it was checked
	if what != permit.Refuse {
		return ask(ctx)
	}
	if after == 0 {
		after = storeHas
	}
	type outcome struct {
		answer permit.Answer
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		answer, err := ask(ctx)
		done <- outcome{answer, err}
	}()
	up := time.NewTimer(after + overdue)
	defer up.Stop()
	select {
	case o := <-done:
		return o.answer, o.err
	case <-up.C:
		return permit.Answer{Behavior: permit.Deny, Message: "nobody has answered in time"}, nil
	}
}

// event is the one whose hooks are answered.
const event = "PermissionRequest"

// A decision is an answer as agents read it.
type decision struct {
	Behavior permit.Behavior `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
}

// decision returns an answer as agents read it; nil if there is none.
func (f *permitFlags) decision(p permit.Prompt, answer permit.Answer) (*decision, error) {
	if answer.Behavior == "" {
		return nil, errors.New(answer.Message)
	}
	d := &decision{Behavior: answer.Behavior}
	if answer.Behavior == permit.Deny {
		d.Message = cmp.Or(answer.Message, "dialai denied this")
		return d, nil
	}
	if answer.Answers == nil {
		return d, nil
	}
	if f.agent != claudeName {
		return nil, fmt.Errorf("%s takes no answers to questions from a hook", f.agent)
	}
	var input map[string]json.RawMessage
	if err := json.Unmarshal(p.Input, &input); err != nil {
		return nil, err
	}
	input["answers"] = answer.Answers
	var err error
	d.Input, err = jsontext.Marshal(input)
	return d, err
}

// serve answers prompts as a tool of MCP.
func (f *permitFlags) serve(ctx context.Context, a *command.App, rules permit.Rules, version string) (err error) {
	c, end, err := f.config(ctx, a, rules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	agentSession := uuid.NewString() // a client of MCP does not tell its own
	return mcp.ServePermissions(ctx, version, a.In, a.Out, func(ctx context.Context, asked mcp.Prompted) (json.RawMessage, error) {
		p := permit.Prompt{Agent: f.agent, AgentSession: agentSession, Tool: asked.Tool, Input: asked.Input, Cwd: cwd}
		answer, err := f.inTime(ctx, func(ctx context.Context) (permit.Answer, error) { return c.Ask(ctx, p) })
		if err != nil {
			return nil, err
		}
		if answer.Behavior == "" {
			answer.Behavior = permit.Deny
		}
		d, err := f.decision(p, answer)
		if err != nil {
			return nil, err
		}
		if d.Behavior == permit.Allow && d.Input == nil {
			d.Input = p.Input // the tool has to say what is to be run
		}
		return jsontext.Marshal(d)
	})
}
