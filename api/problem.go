package api

import (
	"encoding/json"

	"github.com/dialai/dialai/runner"
)

// An Error is what a server answers with when something was not done, as application/problem+json
// (RFC 9457). It never has the body of the request, a secret, a path of the server or a stack.
type Error struct {
	Type      string `json:"type" doc:"the page of the server that explains the code"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code" doc:"stable, for programs"`
	Hint      string `json:"hint,omitempty" doc:"what to do about it"`
	RequestID string `json:"requestId,omitempty"`
	ExitCode  int    `json:"exitCode" doc:"what dialai ends with"`
	Retryable bool   `json:"retryable" doc:"the same request may succeed later"`

	Problems    []Problem           `json:"problems,omitempty" doc:"what is wrong, one by one"`
	Arbitration *runner.Arbitration `json:"arbitration,omitempty"`
	Question    *runner.Question    `json:"question,omitempty" doc:"as it is now"`
	Sequence    int64               `json:"sequence,omitempty" doc:"of the session's newest event"`
	Reasons     []string            `json:"reasons,omitempty"`
}

func (e *Error) Error() string { return e.Detail }

// GetStatus returns the HTTP status.
func (e *Error) GetStatus() int { return e.Status }

// ContentType returns the media type of the error.
func (e *Error) ContentType(string) string { return "application/problem+json" }

// A Problem is one thing that is wrong with a request or a definition.
type Problem struct {
	Pointer  string          `json:"pointer,omitempty" doc:"where, as a JSON pointer"`
	Line     int             `json:"line,omitempty"`
	Column   int             `json:"column,omitempty"`
	Severity string          `json:"severity,omitempty" enum:"error,warning,info"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
}
