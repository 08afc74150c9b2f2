package mcp

import (
	"context"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Texts with which a user has a model begin. What they show of the server is the answer of an
// operation.

// addPrompts offers texts with which a model begins.
func (s *Server) addPrompts() {
	id := &mcp.PromptArgument{Name: "sessionId", Description: "the session", Required: true}
	s.sdk.AddPrompt(&mcp.Prompt{Name: "write_machine", Title: "Write a machine", Description: "Write a machine file for a task, and have it checked.",
		Arguments: []*mcp.PromptArgument{{Name: "task", Description: "what is to be decided, by whom", Required: true}}}, s.writeMachine)
	s.sdk.AddPrompt(&mcp.Prompt{Name: "explain_decision", Title: "Explain a decision", Description: "Say in plain words why a round was decided as it was.",
		Arguments: []*mcp.PromptArgument{id, {Name: "round", Description: "the number of the round; the newest without it"}}}, s.explainDecision)
	s.sdk.AddPrompt(&mcp.Prompt{Name: "prepare_question", Title: "Prepare a question", Description: "Put what a human is asked in few words, without an opinion.",
		Arguments: []*mcp.PromptArgument{id}}, s.prepareQuestion)
}

// prompted is a prompt of one text.
func prompted(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}

func (s *Server) writeMachine(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	task := req.Params.Arguments["task"]
	if task == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "task is missing: what is to be decided?"}
	}
	return prompted("Write a dialai machine file (JSON) for this task:\n\n" + task +
		"\n\nThe resource " + scheme + "docs/machine-file says how they are written, " + scheme + "schema/machine is their JSON Schema. Check what you have written with the tool validate_machine until it finds nothing, and show the file. Humans decide what cannot be undone."), nil
}

func (s *Server) explainDecision(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	query := url.Values{}
	if round := req.Params.Arguments["round"]; round != "" {
		query.Set("round", round)
	}
	return s.about(ctx, Call{Method: http.MethodGet, Path: sessionAt(req.Params.Arguments["sessionId"], "/explain"), Query: query},
		"Say in plain words, for somebody who does not know dialai, why this round was decided as it was, and what would have changed it. Add nothing that is not in it.")
}

func (s *Server) prepareQuestion(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return s.about(ctx, Call{Method: http.MethodGet, Path: sessionAt(req.Params.Arguments["sessionId"], "")},
		"A human is asked to decide in this session. Put in at most ten lines what they are asked, what is known, and what each choice leads to. Give no opinion, and leave nothing out that speaks for or against a choice. What is withheld stays so.")
}

// about is a prompt about what an operation answers.
func (s *Server) about(ctx context.Context, call Call, text string) (*mcp.GetPromptResult, error) {
	o := s.operate(ctx, call)
	if o.problem != nil {
		return nil, &jsonrpc.Error{Code: codeDomain, Message: printable(o.problem.Detail), Data: said(o.problem)}
	}
	return prompted(text + "\n\n" + indented(o.body)), nil
}
