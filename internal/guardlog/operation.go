package guardlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/guard"
)

// Lines between the steps that a guard is given: what is to be forgotten, and what time it is.

// IsOperation reports whether a line has "op", and so is no step.
func IsOperation(line []byte) bool {
	var probe struct {
		Op json.RawMessage `json:"op"`
	}
	return json.Unmarshal(line, &probe) == nil && probe.Op != nil
}

// Operation does what a line with "op" says; ok is false if it is none. fake lets it move
// the clock.
func Operation(g *guard.Guard, clock *Clock, fake bool, line []byte) (answer []byte, ok bool, err error) {
	var op struct {
		Op     *string `json:"op"`
		TaskID string  `json:"task_id"`
		TTL    *int64  `json:"ttl_ms"`
		MS     int64   `json:"ms"`
	}
	if !IsOperation(line) {
		return nil, false, nil
	}
	if err := json.Unmarshal(line, &op); err != nil || op.Op == nil {
		return nil, false, errors.New("op and task_id must be texts, ttl_ms and ms whole numbers")
	}
	switch *op.Op {
	case "reset":
		if op.TaskID == "" {
			return nil, false, errors.New("reset needs a task_id")
		}
		g.Reset(op.TaskID)
	case "gc":
		var ttl []time.Duration
		if op.TTL != nil {
			if *op.TTL < 0 {
				return nil, false, errors.New("ttl_ms is negative")
			}
			ttl = append(ttl, time.Duration(*op.TTL)*time.Millisecond)
		}
		return fmt.Appendf(nil, `{"status":"done","evicted":%d}`, g.GC(ttl...)), true, nil
	case "advance_clock":
		if !fake {
			return nil, false, errors.New("advance_clock needs --fake-clock")
		}
		if op.MS < 0 {
			return nil, false, errors.New("ms is negative")
		}
		clock.Now = clock.Now.Add(time.Duration(op.MS) * time.Millisecond)
	default:
		return nil, false, fmt.Errorf("unknown op %q; it may be reset, gc or advance_clock", *op.Op)
	}
	return []byte(`{"status":"done"}`), true, nil
}

// A Clock is a clock that stands still until it is moved.
type Clock struct{ Now time.Time }

// Time returns what the clock shows.
func (c *Clock) Time() time.Time { return c.Now }
