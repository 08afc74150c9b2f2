package guardlog

import (
	"github.com/dialai/dialai/guard"
)

// ReplayDifference is one verdict that differs.
type ReplayDifference struct {
	Kind     string   `json:"kind"` // difference
	Line     int      `json:"line"`
	Seq      int64    `json:"seq,omitempty"`
	Task     string   `json:"task"`
	Recorded string   `json:"recorded"`
	Codes    []string `json:"codes"` // of the recorded reasons
	Now      string   `json:"now"`
	NowCodes []string `json:"nowCodes"`
	Message  string   `json:"message,omitempty"` // of the first new reason
}

// ReplayLine sums a replay up, as --json shows it last.
type ReplayLine struct {
	Kind        string          `json:"kind"` // summary
	Lines       int             `json:"lines"`
	Malformed   int             `json:"malformed"`
	Tasks       int             `json:"tasks"`
	Checks      int             `json:"checks"`
	Equal       int             `json:"equal"`
	Different   int             `json:"different"`
	Undecidable int             `json:"undecidable"`
	Why         []undecidable   `json:"why"`
	First       *divergence     `json:"firstDivergence,omitempty"`
	Verdicts    []verdictChange `json:"verdicts"`
	Calls       int64           `json:"calls"`
	SpentCount
}

// undecidable says why steps could not be judged again.
type undecidable struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// A divergence is where a verdict first differs.
type divergence struct {
	Line int    `json:"line"`
	Seq  int64  `json:"seq,omitempty"`
	Task string `json:"task"`
}

// verdictChange counts the steps of one verdict then and now.
type verdictChange struct {
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
	Count    int    `json:"count"`
}

// A Replay reads a log and compares.
type Replay struct {
	replayer *guard.Replayer
	differs  func(ReplayDifference) error
	sum      ReplayLine
}

// NewReplay returns a replay of a log of which no line was read yet. differs gets each
// verdict that differs.
func NewReplay(replayer *guard.Replayer, differs func(ReplayDifference) error) *Replay {
	return &Replay{replayer: replayer, differs: differs, sum: ReplayLine{Kind: "summary", Why: []undecidable{}, Verdicts: []verdictChange{}}}
}

// Line judges the step of line n of the log again, if it is one.
func (r *Replay) Line(n int, line []byte, err error) error {
	r.sum.Lines++
	var rec guard.LogRecord
	if err == nil {
		rec, err = guard.ParseLog(line)
	}
	if err != nil {
		r.sum.Malformed++
		return nil
	}
	result, isCheck := r.replayer.Next(rec)
	if !isCheck {
		return nil
	}
	r.sum.Checks++
	if result.Undecidable != "" {
		r.sum.Undecidable++
		r.undecidable(result.Undecidable)
		return nil
	}
	r.change(result.Recorded.String(), result.Verdict.Status.String())
	if !result.Differs {
		r.sum.Equal++
		return nil
	}
	r.sum.Different++
	if r.sum.First == nil {
		r.sum.First = &divergence{n, rec.Seq, result.Task}
	}
	d := ReplayDifference{
		Kind: "difference", Line: n, Seq: rec.Seq, Task: result.Task, Recorded: result.Recorded.String(), Codes: append([]string{}, result.Codes...),
		Now: result.Verdict.Status.String(), NowCodes: result.Verdict.Codes(),
	}
	if len(result.Verdict.Reasons) > 0 {
		d.Message = result.Verdict.Reasons[0].Message
	}
	return r.differs(d)
}

func (r *Replay) undecidable(why string) {
	for i := range r.sum.Why {
		if r.sum.Why[i].Reason == why {
			r.sum.Why[i].Count++
			return
		}
	}
	if len(r.sum.Why) < mostNames {
		r.sum.Why = append(r.sum.Why, undecidable{why, 1})
	}
}

func (r *Replay) change(recorded, now string) {
	for i := range r.sum.Verdicts {
		if v := &r.sum.Verdicts[i]; v.Recorded == recorded && v.Now == now {
			v.Count++
			return
		}
	}
	r.sum.Verdicts = append(r.sum.Verdicts, verdictChange{recorded, now, 1})
}

// Summary sums up what was read so far.
func (r *Replay) Summary() ReplayLine {
	spent := r.replayer.Spent()
	r.sum.Tasks, r.sum.Calls = r.replayer.Tasks(), spent.Calls
	r.sum.SpentCount = SpentCount{spent.TokensIn, spent.TokensOut, spent.Money}
	return r.sum
}
