package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/dialai/dialai/guard"
)

// Vectors of step checks, by themselves and through the command.

// guardVectors runs the suites of step checks of a vector file.
func guardVectors(v *guardVector) ([]map[string]any, error) {
	config, problems := guard.ParseAs(v.Config, guard.Compat)
	clock := &stepClock{now: time.Unix(1_700_000_000, 0)}
	var g *guard.Guard
	if len(problems) == 0 {
		var err error
		if g, err = guard.New(config, guard.WithClock(clock.time)); err != nil {
			return nil, err
		}
	}
	var results []map[string]any
	for _, s := range v.Steps {
		if g == nil {
			results = append(results, map[string]any{"status": "config_error", "reasons": []string{}})
			continue
		}
		results = append(results, guardStep(g, clock, s.Input))
	}
	return results, nil
}

// A guardVector is one case about guards.
type guardVector struct {
	Name   string          `json:"name"`
	Suite  string          `json:"suite"`
	Config json.RawMessage `json:"config"`
	Steps  []struct {
		Input json.RawMessage `json:"input"`
	} `json:"steps"`
}

func guardStep(g *guard.Guard, clock *stepClock, input []byte) map[string]any {
	failed := map[string]any{"status": "error", "reasons": []string{}}
	answer, ok, err := operation(g, clock, true, input)
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
		answer = v.AppendResult(nil, metrics, guard.Compat)
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

// commandVectors runs this program's own commands, each step a process of its
// own as far as state goes.
func commandVectors(a *app, v *guardVector) ([]map[string]any, error) {
	file, err := os.CreateTemp("", "guards-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(v.Config); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	var results []map[string]any
	for _, s := range v.Steps {
		var in struct {
			Argv  []string `json:"argv"`
			Stdin string   `json:"stdin"`
		}
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return nil, err
		}
		for i, arg := range in.Argv {
			if arg == "CONFIG" {
				in.Argv[i] = file.Name()
			}
		}
		results = append(results, a.commandVector(in.Argv, in.Stdin))
	}
	return results, nil
}

// commandVector runs one command and returns what it printed and how it ended.
func (a *app) commandVector(argv []string, stdin string) map[string]any {
	var out, message bytes.Buffer
	code := (&app{registry: a.registry, in: bytes.NewReader([]byte(stdin)), out: &out, err: &message, lookup: a.lookup}).main(context.Background(), argv)
	result := map[string]any{"status": "error", "reasons": []string{}}
	if out.Len() > 0 {
		result = resultOfAnswer(out.Bytes())
	}
	result["exit"] = code
	return result
}
