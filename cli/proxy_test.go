package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a program that serves tools over stdin and stdout, as those do that agents use.
func mcpServer() {
	type in struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)
	for _, name := range []string{"read", "write", "remove", "crash"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			if name == "crash" {
				os.Exit(7)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " did " + in.Text}}}, nil, nil
		})
	}
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until nobody is there
}

// mcpAgent is a program that starts an MCP server and calls its tools: mcpagent list
// write:TEXT… -- COMMAND. It prints what it is answered, and ends with the exit code of the
// server if that is not 0.
func mcpAgent() {
	at := slices.Index(os.Args, "--")
	cmd := exec.Command(os.Args[at+1], os.Args[at+2:]...)
	cmd.Stderr = os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		fmt.Println("no server:", err)
	}
	for _, call := range os.Args[1:at] {
		if session == nil {
			break
		}
		fmt.Println(answerTo(session, call))
	}
	if session != nil {
		err = session.Close()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) || cmd.ProcessState != nil && !cmd.ProcessState.Success() {
		os.Exit(max(1, cmd.ProcessState.ExitCode()))
	}
}

// answerTo calls one tool, with a text or with arguments as JSON, or lists them.
func answerTo(session *mcp.ClientSession, call string) string {
	tool, text, _ := strings.Cut(call, ":")
	if tool == "list" {
		list, err := session.ListTools(context.Background(), nil)
		if err != nil {
			return "error: " + err.Error()
		}
		names := []string{"tools:"}
		for _, t := range list.Tools {
			names = append(names, t.Name)
		}
		return strings.Join(names, " ")
	}
	var arguments any = map[string]any{"text": text}
	if strings.HasPrefix(text, "{") {
		arguments = json.RawMessage(text)
	}
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "error: " + err.Error()
	}
	var said []string
	for _, c := range result.Content {
		said = append(said, c.(*mcp.TextContent).Text)
	}
	if result.IsError {
		return "refused: " + strings.Join(said, "; ")
	}
	return strings.Join(said, "; ")
}
