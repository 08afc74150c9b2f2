package mcp

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool is an operation, or several, under a name of its own.
type tool struct {
	name        string
	description string
	operation   string // whose schemas and permission it has
	sets        []string
	in          []argument
	hints       hints
	asks        bool           // it may put something to a human, and say so
	needs       []string       // operations of which the caller has to be allowed one; nil means operation
	answer      map[string]any // the schema of its result; nil takes that of the operation
	// does is what it does; nil asks the operation.
	does func(ctx context.Context, c *conversation) outcome

	input, output map[string]any // schemas
	method, path  string         // of the operation
}

// An argument is a part of a request.
type argument struct {
	name     string
	in       place
	as       string // its name there; "" is the same
	required bool
	schema   map[string]any // nil takes that of the operation
	without  string         // the value of a parameter that is not given
}

// A place is where in a request an argument goes.
type place int

const (
	inBody  place = iota // a member of the body
	inPath               // a segment of the path
	inQuery              // a parameter
	inWhole              // it is the body
	inWait               // seconds to wait: the parameter wait
	inTool               // not in the request: the tool itself takes it
)

type hints struct{ reads, idempotent, destructive, open bool }

func (h hints) annotations() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: h.reads, IdempotentHint: h.idempotent, DestructiveHint: &h.destructive, OpenWorldHint: &h.open}
}

func (t *tool) described() *mcp.Tool {
	return &mcp.Tool{Name: t.name, Description: t.description, InputSchema: t.input, OutputSchema: t.output, Annotations: t.hints.annotations()}
}

// offered reports whether a caller may do what the tool does.
func (t *tool) offered(c Caller) bool {
	needs := t.needs
	if needs == nil {
		needs = []string{t.operation}
	}
	return c.May != nil && slices.ContainsFunc(needs, c.May)
}

var (
	session     = argument{name: "sessionId", in: inPath, as: "id", required: true}
	machineName = argument{name: "machineName", in: inPath, as: "machine", required: true}
	specialist  = argument{name: "specialistId", in: inPath, as: "specialist", required: true}
	cost        = []argument{{name: "costUSD"}, {name: "latencyMsec"}, {name: "numInputTokens"}, {name: "numOutputTokens"}}
	reads       = hints{reads: true}
	opens       = hints{open: true}
	rules       = hints{destructive: true}
)

func object(description string) map[string]any {
	return map[string]any{"type": "object", "description": description}
}

func prose(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func seconds(description string) map[string]any {
	return map[string]any{"type": "integer", "minimum": 0, "maximum": 60, "description": description}
}

func limit(most, without int) map[string]any {
	return map[string]any{"type": "integer", "minimum": 1, "maximum": most, "default": without}
}

func paged(list ...argument) []argument {
	return append(list, argument{name: "limit", in: inQuery, schema: limit(200, 50)}, argument{name: "cursor", in: inQuery})
}

// allTools are the tools, each call anew: a Server writes its schemas into them.
func allTools() []*tool {
	return append(append(dialTools(), runTools()...), deskTools()...)
}

// dialTools are the twelve that clients of DIAL know.
func dialTools() []*tool {
	meta := argument{name: "metaJson", schema: object("what the session is about: the input of the machine")}
	definition := object("a definition, as machine files have it")
	list := []*tool{
		{name: "create_session", operation: "start-session", description: "Start a session of a machine, given by its name or as a definition. It goes on by itself.",
			in: []argument{{name: "machine", schema: definition}, {name: "machineName"}, meta, {name: "seed"}, {name: "mode"}}},
		{name: "get_session", operation: "get-session", description: "A session: where it stands, what was proposed, and the question if it waits for a human.", in: []argument{session}, hints: reads},
		{name: "get_sessions", operation: "list-sessions", description: "Sessions, the newest first, page by page.", in: paged(argument{name: "machineName", in: inQuery, as: "machine"}, argument{name: "status", in: inQuery}), hints: reads},
		{name: "register_proposer", operation: "register-specialist", description: "Register a proposer, who takes part in all sessions of a machine. Humans are registered by an administrator.", in: registering(true), asks: true, does: register("proposer")},
		{name: "register_arbiter", operation: "register-specialist", description: "Register an arbiter, who decides in all sessions of a machine.", in: registering(false), does: register("arbiter")},
		{name: "submit_proposal", operation: "propose", description: "Hand in a proposal for a specialist in the present round; without transitionName the specialist is asked. For a human it is only put to them.",
			in: append([]argument{session, {name: "specialistId", required: true}, {name: "roundId"}, {name: "transitionName"}, {name: "reasoning"}, {name: "metaJson"}, {name: "toolCalls"}}, cost...), hints: opens, asks: true, does: submitProposal},
		{name: "evaluate_consensus", operation: "evaluate", description: "What the arbiter would decide now. Nothing changes.", in: []argument{session}, hints: hints{reads: true, open: true}},
		{name: "submit_arbitration", operation: "arbitrate", description: "Have the arbiter decide the present round. With transitionName it is a human's ruling, which is only put to them.",
			in:    append([]argument{session, {name: "roundId"}, taken("specialistId", "the human who is to rule"), taken("transitionName", "what the human is asked to choose"), taken("reasoning", "why, for the human to read"), {name: "metaJson", in: inTool, schema: object("the payload that is suggested")}}, costTaken()...),
			hints: hints{destructive: true, open: true}, asks: true, needs: []string{"arbitrate", "decide"}, does: submitArbitration},
		{name: "execute_transition", operation: "execute", description: "Ask a human to have a transition executed, by a word that teaches nothing. Nothing happens by the arguments alone.",
			in: []argument{session, required(taken("transitionName", "what the human is asked to choose")), required(taken("toState", "where that leads")), taken("reasoning", "why, for the human to read"), taken("specialistId", "the human who is to rule")}, hints: rules, answer: askedSchema, needs: []string{"execute", "resume-session"}, does: executeTransition},
		{name: "run_session", operation: "start-session", description: "Start a session of a definition and wait until it ends, needs a human or waits for somebody.",
			in: []argument{{name: "machine", required: true, schema: definition}, meta, {name: "waitSeconds", in: inWait, schema: seconds("how long to wait; 60 without it"), without: "60"}}, hints: opens, does: runSession},
		{name: "get_collapse_metrics", operation: "get-metrics", description: "How far a machine does without humans, in all or for one state.", in: []argument{machineName, {name: "state", in: inQuery}}, hints: reads},
		{name: "get_decision_log", operation: "list-decisions", description: "What was executed in the sessions of a machine, the newest first.", in: []argument{machineName, {name: "limit", in: inQuery, schema: limit(200, 100), without: "100"}, {name: "cursor", in: inQuery}}, hints: reads},
	}
	for _, t := range list {
		t.sets = append(t.sets, "dial")
		switch t.name {
		case "create_session", "get_session", "get_sessions", "submit_proposal", "evaluate_consensus", "submit_arbitration", "run_session":
			t.sets = append(t.sets, "run")
		}
		if t.name == "get_session" || t.name == "get_sessions" {
			t.sets = append(t.sets, "desk")
		}
	}
	return list
}

func required(a argument) argument {
	a.required = true
	return a
}

// taken is an argument that the tool itself takes.
func taken(name, description string) argument {
	return argument{name: name, in: inTool, schema: prose(description)}
}

func costTaken() (list []argument) {
	for _, a := range cost {
		list = append(list, argument{name: a.name, in: inTool, schema: map[string]any{"type": "number", "minimum": 0}})
	}
	return list
}

// registering are the arguments that say who is registered.
func registering(proposer bool) []argument {
	list := []argument{{name: "specialistId", required: true}, machineName}
	if proposer {
		list = append(list, argument{name: "isHuman"})
	}
	for _, name := range []string{"strategyFnName", "threshold", "strategyWebhookUrl", "contextFn", "contextWebhookUrl", "modelId", "provider", "webhookTokenName", "webhookSecretName", "timeout", "estimatedCostUSD", "required"} {
		list = append(list, argument{name: name})
	}
	return list
}

// runTools are those for who has sessions run.
func runTools() []*tool {
	list := []*tool{
		{name: "step_session", operation: "step-session", description: "Carry a session one step further.", in: []argument{session}, hints: opens},
		{name: "tick", operation: "step-session", description: "Carry sessions one step further that run, and those for which a timer has come.", in: []argument{{name: "limit", in: inTool, schema: limit(100, 100)}}, hints: opens, answer: tickedSchema, does: tick},
		{name: "resume_session", operation: "resume-session", description: "Take a session up again that has failed or was stopped.", in: []argument{session, {name: "note"}}, hints: opens},
		{name: "validate_machine", operation: "validate-machine", description: "Check a definition, and say what is wrong with it or probably not meant.", in: []argument{{name: "machine", in: inWhole, required: true, schema: object("a definition, as machine files have it")}}, hints: reads},
		{name: "get_specialists", operation: "list-specialists", description: "Who is registered for a machine beside its definition, switched off, or champion.", in: paged(machineName), hints: reads},
		{name: "enable_specialist", operation: "switch-specialist", description: "Switch a specialist on, in all sessions of a machine.", in: []argument{machineName, specialist}, hints: hints{idempotent: true}, does: switching(`{"enabled":true}`)},
		{name: "disable_specialist", operation: "switch-specialist", description: "Switch a specialist off, in all sessions of a machine.", in: []argument{machineName, specialist}, hints: hints{idempotent: true}, does: switching(`{"enabled":false}`)},
		{name: "get_llm_audit", operation: "list-model-calls", description: "How models were asked in a session, and what they answered.", in: paged(session), hints: reads},
		{name: "get_events", operation: "list-events", description: "The log of a session, with secrets and personal data masked.", in: []argument{session, {name: "after", in: inQuery}, {name: "kinds", in: inQuery}, {name: "limit", in: inQuery, schema: limit(200, 200), without: "200"}}, hints: reads},
		{name: "check_step", operation: "check-steps", description: "Have guards judge steps of an agent, one after the other. Nothing is kept.", in: []argument{{name: "config", required: true, schema: object("guards, as a guards file has them")}, {name: "steps", required: true}, {name: "profile"}}, hints: reads},
	}
	for _, t := range list {
		t.sets = append(t.sets, "run")
	}
	return list
}

// deskTools are those about questions, and about what humans have said.
func deskTools() []*tool {
	list := []*tool{
		{name: "list_inbox", operation: "list-inbox", description: "The questions that wait for a human.", in: paged(argument{name: "machineName", in: inQuery, as: "machine"}, argument{name: "state", in: inQuery}, argument{name: "human", in: inQuery}), hints: reads},
		{name: "ask_human", operation: "get-session", description: "Put the open question of a session to a human: by a form or page of the client where it has one, else by saying where to answer. It waits for their word.",
			in: []argument{session, {name: "waitSeconds", in: inTool, schema: seconds("how long to wait for the human's word; 0 without it")}, taken("specialistId", "the human who is asked; without it the only one as whom the caller may")}, hints: opens, answer: askedSchema, does: askHuman},
		{name: "explain_round", operation: "explain-round", description: "Why a round was decided as it was, and what would have changed it.", in: []argument{session, {name: "round", in: inQuery}}, hints: reads},
		{name: "get_risk", operation: "get-risk", description: "What a machine promises about wrong decisions, beside what came of it.", in: []argument{machineName}, hints: reads},
		{name: "get_alignment", operation: "list-alignment", description: "How often specialists proposed what humans decided.", in: paged(machineName, argument{name: "state", in: inQuery}), hints: reads},
		{name: "get_exemplars", operation: "list-exemplars", description: "The decisions that are kept as examples.", in: paged(machineName, argument{name: "state", in: inQuery}), hints: reads},
		{name: "evaluate_specialist", operation: "evaluate-specialist", description: "Compare what a specialist proposed with what humans decided.", in: []argument{machineName, specialist}, hints: reads},
	}
	for _, t := range list {
		t.sets = append(t.sets, "desk")
		if t.name == "ask_human" || t.name == "list_inbox" || t.name == "explain_round" {
			t.sets = append(t.sets, "run")
		}
	}
	return list
}
