package mcp

import (
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A coding agent may put its permission prompts to a tool of MCP instead of its user. That is a
// server of its own, with that tool alone: who may answer prompts need not see sessions.

// A Prompted is what an agent asks the tool: may it use that tool of its own with that input?
type Prompted struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"input"`
}

// ServePermissions answers the permission prompts of an agent over a pair of streams, with a
// tool named permit, until the agent leaves or ctx ends. ask answers one, as JSON; the context
// ends when the agent withdraws it. What ask cannot answer is an error of the tool, which
// allows nothing.
func ServePermissions(ctx context.Context, version string, in io.Reader, out io.Writer, ask func(context.Context, Prompted) (json.RawMessage, error)) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "dialai-permit", Title: "dialai permit", Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.AddTool(&mcp.Tool{
		Name: "permit", Description: "Answers a permission prompt: may the agent use a tool with this input?",
		InputSchema: json.RawMessage(`{"type":"object","required":["tool_name","input"],"properties":{"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}}}`),
	}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var p Prompted
		err := json.Unmarshal(req.Params.Arguments, &p)
		var answer json.RawMessage
		if err == nil {
			answer, err = ask(ctx, p)
		}
		if err != nil {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + err.Error()}}}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil
	})
	return s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
