package verdict

import "encoding/json"

// A Reason says why a step did not simply pass.
type Reason struct {
	Code    string   // stable, such as "max_steps"
	Guard   string   // the family of checks it belongs to
	Class   Status   // how severe it is
	Message string   // for people; never contains what was matched
	Limit   string   // the limit as text; "" where there is none
	Seen    string   // what was held against it
	Subject string   // the tool, the index of the pattern or the pack's rule it is about
	Indices []int32  // of the history, for loops
	Found   *Finding // where, for packs
}

// A Finding says where a pack has found something, never what.
type Finding struct {
	Part   string // output, meta (what a transition brings as metaJson), args or result
	Call   int    // the tool call, from 1; 0 for output and meta
	Offset int    // in bytes, of the part as it was given
	Length int    // in bytes
}

// Text returns "code: message".
func (r Reason) Text() string { return r.Code + ": " + r.Message }

// Meta returns the reason's numbers by their names in JSON; nil if there are
// none.
func (r Reason) Meta() map[string]any {
	meta := map[string]any{}
	if r.Limit != "" {
		meta["limit"] = json.Number(r.Limit)
	}
	if r.Seen != "" {
		meta["observed"] = json.Number(r.Seen)
	}
	if len(r.Indices) > 0 {
		meta["indices"] = r.Indices
	}
	if f := r.Found; f != nil {
		meta["part"], meta["offset"], meta["length"] = f.Part, f.Offset, f.Length
		if f.Call > 0 {
			meta["call"] = f.Call
		}
	}
	switch {
	case r.Subject == "":
	case r.Guard == "classifier":
		meta["category"] = r.Subject
	case r.Found != nil:
		meta["rule"] = r.Subject
	case r.Code == "forbidden_pattern":
		meta["pattern_index"] = json.Number(r.Subject)
	case r.Guard == "loop" && r.Code == "loop_state_cycle":
		meta["state"] = r.Subject
	default:
		meta["tool"] = r.Subject
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}
