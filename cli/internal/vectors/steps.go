package vectors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
)

// Vectors of step checks, by themselves and through the command.

// stepSuite runs step checks.
func stepSuite(config json.RawMessage) (guardSuite, error) {
	c, problems := guard.ParseAs(config, guard.Compat)
	if len(problems) > 0 {
		return func(context.Context, json.RawMessage) (any, error) { return plain("config_error"), nil }, nil
	}
	clock := &guardlog.Clock{Now: time.Unix(1_700_000_000, 0)}
	g, err := guard.New(c, guard.WithClock(clock.Time))
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, input json.RawMessage) (any, error) { return guardStep(g, clock, input), nil }, nil
}

func guardStep(g *guard.Guard, clock *guardlog.Clock, input []byte) map[string]any {
	failed := map[string]any{"status": "error", "reasons": []string{}}
	answer, ok, err := guardlog.Operation(g, clock, true, input)
	if err != nil {
		return failed
	}
	if !ok {
		in, err := guard.ParseCheckInput(input)
		if err != nil {
			return failed
		}
		v, metrics, err := g.Check(in)
		if err != nil {
			return failed
		}
		answer = guard.AppendResult(nil, v, metrics, guard.Compat)
	}
	return resultOfAnswer(answer)
}

// resultOfAnswer returns an answer in the shape of a vector's expectation:
// reasons are codes.
func resultOfAnswer(answer []byte) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(answer))
	dec.UseNumber()
	var result map[string]any
	if err := dec.Decode(&result); err != nil {
		panic(err) // it was written by AppendResult
	}
	codes := []string{}
	reasons, _ := result["reasons"].([]any)
	for _, r := range reasons {
		codes = append(codes, r.(map[string]any)["code"].(string))
	}
	result["reasons"] = codes
	return result
}

// commandSuite runs this program's own commands, each as if it were a process of
// its own.
func (r *run) commandSuite(config json.RawMessage) guardSuite {
	type step struct {
		Argv  []string `json:"argv"`
		Stdin string   `json:"stdin"`
	}
	return reading(false, func(_ context.Context, in step) (any, error) {
		file, err := os.CreateTemp("", "guards-*.json")
		if err != nil {
			return nil, err
		}
		defer os.Remove(file.Name())
		_, err = file.Write(config)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		for i, arg := range in.Argv {
			if arg == "CONFIG" {
				in.Argv[i] = file.Name()
			}
		}
		return r.command(in.Argv, in.Stdin), nil
	})
}

// command runs one command and returns what it printed and how it ended.
func (r *run) command(argv []string, stdin string) map[string]any {
	var out, message bytes.Buffer
	code := r.program(argv, strings.NewReader(stdin), &out, &message)
	result := map[string]any{"status": "error", "reasons": []string{}}
	if out.Len() > 0 {
		result = resultOfAnswer(out.Bytes())
	}
	result["exit"] = code
	return result
}
