package server

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Examples in the document: requests, and what was answered to them, as TestExamples has recorded
// them.

//go:embed examples.json
var recordedExamples []byte

// An example is a request to an operation and its answer.
type example struct {
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// examples returns those that are recorded, by the ids of the operations.
var examples = sync.OnceValue(func() (all map[string]example) {
	if err := json.Unmarshal(recordedExamples, &all); err != nil {
		panic(err) // TestExamples has written them
	}
	return all
})

// illustrate puts the examples into the document.
func (s *Server) illustrate() {
	for _, item := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op == nil {
				continue
			}
			e, ok := examples()[op.OperationID]
			if !ok {
				continue
			}
			if op.RequestBody != nil && e.Body != nil {
				op.RequestBody.Content["application/json"].Example = e.Body
			}
			if answer := op.Responses[strconv.Itoa(e.Status)]; answer != nil && e.Answer != nil && answer.Content["application/json"] != nil {
				answer.Content["application/json"].Example = e.Answer
			}
		}
	}
}
