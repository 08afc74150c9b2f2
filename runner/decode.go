package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// A Raw event is an event as it is stored.
type Raw struct {
	Seq  int64           `json:"seq"`
	At   specialist.Time `json:"at"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// DecodeRaw splits the events of one record without looking into them.
func DecodeRaw(events []byte) ([]Raw, error) {
	dec := json.NewDecoder(bytes.NewReader(events))
	var raw []Raw
	if err := dec.Decode(&raw); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the events")
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("the record holds no events")
	}
	return raw, nil
}

// A Folder rebuilds a session from its log, record by record. The zero Folder
// with Programs set is at the beginning of a log.
type Folder struct {
	Programs *Programs
	// Definition returns the stored definition of a digest.
	Definition func(digest string) ([]byte, error)

	// Decision, if set, is called with every decision of the log.
	Decision func(*DecisionRecord)
	// Gate, if set, is called with every step that was judged, as the guards saw
	// it. known is false if the log does not hold what a refused ruling said.
	Gate func(seq int64, g *Gated, step guard.Step, known bool)
	// Applied, if set, is called with every event of the log, and with what the
	// session had spent before it and after it.
	Applied func(seq int64, ev Event, before, after guard.Book)

	// closing, if set, is called with every executed transition, and with the
	// session and the round as they were before it.
	closing func(*Session, *openRound, *Executed)

	now     Session
	open    openRound
	verdict guard.Verdict // of the step that is being executed
	gated   *Gated        // that step, until Gate was told of it
	seq     int64         // of the event gated
}

// Session returns the session as of the records added so far.
func (f *Folder) Session() *Session { return freeze(&f.now, &f.open) }

// Out returns the asks of the present round that went outside this process and
// that nothing has come of yet.
func (f *Folder) Out() (out []Ask) {
	for i := range f.open.asks {
		if a := &f.open.asks[i]; a.status == askOpen && a.Remote != nil {
			out = append(out, *a.Ask)
		}
	}
	return out
}

// Add applies the events of one record and returns them.
func (f *Folder) Add(events []byte) ([]Event, error) {
	raw, err := DecodeRaw(events)
	if err != nil {
		return nil, err
	}
	decoded := make([]Event, len(raw))
	for i := range raw {
		if want := f.now.Sequence + 1; raw[i].Seq != want {
			return nil, fmt.Errorf("event %d where event %d should be", raw[i].Seq, want)
		}
		data, err := f.decode(&raw[i])
		if err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", raw[i].Seq, raw[i].Kind, err)
		}
		decoded[i] = Event{raw[i].At, data}
		f.observe(raw[i].Seq, data)
		before := f.now.Spent()
		apply(&f.now, &f.open, &decoded[i])
		if f.Applied != nil {
			f.Applied(raw[i].Seq, decoded[i], before, f.now.Spent())
		}
	}
	return decoded, nil
}

// observe makes a decision record of an executed transition, from the round as it
// was before.
func (f *Folder) observe(seq int64, data Data) {
	switch d := data.(type) {
	case *Gated:
		f.verdict = d.Verdict
		if f.gated, f.seq = d, seq; !d.Verdict.Passed() {
			f.gate(refusedStep(&f.now, &f.open, d))
		}
	case *Executed:
		f.gate(stepOf(&f.now, &f.open, d), true)
		if f.closing != nil {
			f.closing(&f.now, &f.open, d)
		}
		if f.Decision != nil {
			f.Decision(newDecisionRecord(&f.now, &f.open, d, f.verdict, seq))
		}
	}
}

// gate tells Gate of the step that was judged last.
func (f *Folder) gate(step guard.Step, known bool) {
	if f.Gate != nil && f.gated != nil {
		step.Task, step.Attempt = f.now.ID.String(), int64(f.now.Rejects)
		f.Gate(f.seq, f.gated, step, known)
	}
	f.gated = nil
}

// decode turns one stored event into what it says. The session as of the event
// before it gives names their meaning.
func (f *Folder) decode(r *Raw) (Data, error) {
	d := &reading{data: r.Data, session: &f.now, arrivals: f.open.arrivals}
	if f.now.Program == nil && r.Kind != KindCreated {
		return nil, fmt.Errorf("the log does not begin with %s", KindCreated)
	}
	switch r.Kind {
	case KindCreated:
		return f.created(d)
	case KindRoundOpened:
		return d.roundOpened()
	case KindAsked:
		return d.asked()
	case KindProposed:
		return d.proposed(r.At)
	case KindAskFailed:
		return d.askFailed()
	case KindDiscarded:
		return d.discarded()
	case KindProbed:
		return d.probed()
	case KindJudged:
		return d.judged()
	case KindGated:
		return d.gated()
	case KindExecuted:
		return d.executed(r.At)
	case KindLearned:
		return d.learned(r.At)
	case KindReviewed:
		return d.reviewed()
	case KindNeedsHuman:
		v := &AwaitsHuman{}
		return v, d.into(v)
	case KindResumed:
		v := &Resumed{}
		return v, d.into(v)
	case KindEnded:
		return d.ended()
	}
	return nil, &DecodeError{"event kind", r.Kind}
}

func (f *Folder) created(d *reading) (Data, error) {
	var v struct {
		SessionID       string          `json:"sessionId"`
		MachineDigest   string          `json:"machineDigest"`
		MetaJSON        json.RawMessage `json:"metaJson"`
		Seed            string          `json:"seed"`
		DefaultProposer bool            `json:"defaultProposer"`
		DefaultArbiter  bool            `json:"defaultArbiter"`
		Mode            machine.Mode    `json:"mode"`
		Prices          string          `json:"prices"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	if f.now.Program != nil {
		return nil, fmt.Errorf("the session is created twice")
	}
	id, err := ParseID(v.SessionID)
	if err != nil {
		return nil, &DecodeError{"sessionId", v.SessionID}
	}
	program := f.Programs.Known(v.MachineDigest)
	if program == nil {
		definition, err := f.Definition(v.MachineDigest)
		if err != nil {
			return nil, err
		}
		if program, err = f.Programs.Parse(v.MachineDigest, definition); err != nil {
			return nil, err
		}
	}
	c := &Created{Program: program, Options: Options{Meta: v.MetaJSON, DefaultProposer: v.DefaultProposer, DefaultArbiter: v.DefaultArbiter, Mode: v.Mode, Prices: v.Prices}}
	if v.Seed != "" {
		if c.Options.Seed, err = strconv.ParseUint(v.Seed, 10, 64); err != nil {
			return nil, &DecodeError{"seed", v.Seed}
		}
	}
	f.now.ID = id
	return c, nil
}

// A reading is the data of one event on its way in.
type reading struct {
	data     []byte
	session  *Session
	arrivals int32 // in the round so far
}

func (d *reading) into(v any) error { return json.Unmarshal(d.data, v) }

func (d *reading) state(name string) (*machine.State, error) {
	if s := d.session.Machine().State(name); s != nil {
		return s, nil
	}
	return nil, &DecodeError{"state", name}
}

// transition finds a transition of the session's present state.
func (d *reading) transition(name string) (*machine.Transition, error) {
	if d.session.State != nil {
		if t := d.session.State.Transition(name); t != nil {
			return t, nil
		}
	}
	return nil, &DecodeError{"transition", name}
}

func (d *reading) roundOpened() (Data, error) {
	var v struct {
		Round   int32    `json:"round"`
		Attempt int32    `json:"attempt"`
		State   string   `json:"state"`
		Notices []string `json:"notices"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	s, err := d.state(v.State)
	return &RoundOpened{v.Round, v.Attempt, s, v.Notices}, err
}

func (d *reading) asked() (Data, error) {
	var v struct {
		Asks []struct {
			Ask              int32           `json:"ask"`
			SpecialistID     string          `json:"specialistId"`
			Mode             string          `json:"mode"`
			Role             machine.Role    `json:"role"`
			AskID            string          `json:"askId"`
			Owner            string          `json:"owner"`
			Deadline         specialist.Time `json:"deadline"`
			EstimatedCostUSD exact.Money     `json:"estimatedCostUSD"`
			TokensIn         int64           `json:"estimatedInputTokens"`
			TokensOut        int64           `json:"estimatedOutputTokens"`
			Accepted         bool            `json:"accepted"`
			TokenHash        string          `json:"tokenHash"`
			Repeat           int32           `json:"repeat"`
			Shadow           bool            `json:"shadow"`
		} `json:"asks"`
		Wave *Wave `json:"wave"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	asked := &Asked{Asks: make([]Ask, len(v.Asks)), Wave: v.Wave}
	if x := v.Wave; x != nil && x.Information != nil && len(x.Information) != len(x.Specialists) {
		return nil, &DecodeError{"information", fmt.Sprint(x.Information)}
	}
	for i, a := range v.Asks {
		role, err := roleOr(a.Role)
		if err != nil {
			return nil, err
		}
		asked.Asks[i] = Ask{SpecialistID: a.SpecialistID, Index: a.Ask, Role: role, Source: specialist.SourceNamed(a.Mode), Shadow: a.Shadow}
		if a.AskID != "" {
			asked.Asks[i].Remote = &RemoteAsk{a.Owner, a.Deadline, a.EstimatedCostUSD, a.TokensIn, a.TokensOut, a.Accepted, a.TokenHash, a.Repeat}
		}
	}
	return asked, nil
}

// roleOr returns the role of that name; none means proposer.
func roleOr(r machine.Role) (machine.Role, error) {
	switch r {
	case "":
		return machine.Proposer, nil
	case machine.Proposer, machine.Arbiter, roleGuard:
		return r, nil
	}
	return "", &DecodeError{"role", string(r)}
}

// usage is the cost members of an event.
type usage struct {
	CostUSD         *exact.Money `json:"costUSD"`
	LatencyMsec     *int64       `json:"latencyMsec"`
	NumInputTokens  *int64       `json:"numInputTokens"`
	NumOutputTokens *int64       `json:"numOutputTokens"`
	Estimated       bool         `json:"estimated"`

	TokenDetail *specialist.UsageDetail `json:"tokenDetail"`
}

func (u usage) value() (v specialist.Usage) {
	if u.CostUSD != nil {
		v = v.WithCost(*u.CostUSD)
	}
	for _, m := range []struct {
		from *int64
		into *int64
		bit  specialist.Given
	}{
		{u.LatencyMsec, &v.LatencyMsec, specialist.LatencyGiven},
		{u.NumInputTokens, &v.NumInputTokens, specialist.InputGiven},
		{u.NumOutputTokens, &v.NumOutputTokens, specialist.OutputGiven},
	} {
		if m.from != nil {
			*m.into, v.Given = *m.from, v.Given|m.bit
		}
	}
	v.Estimated, v.Detail = u.Estimated, u.TokenDetail
	return v
}

func (d *reading) proposed(at specialist.Time) (Data, error) {
	var v struct {
		usage
		SpecialistID   string                `json:"specialistId"`
		IsHuman        bool                  `json:"isHuman"`
		TransitionName string                `json:"transitionName"`
		Reasoning      string                `json:"reasoning"`
		MetaJSON       json.RawMessage       `json:"metaJson"`
		Arrival        int32                 `json:"arrival"`
		Mode           string                `json:"mode"`
		Model          string                `json:"model"`
		ToolCalls      []specialist.ToolCall `json:"toolCalls"`
		OptionOrder    []string              `json:"optionOrder"`
		AskID          string                `json:"askId"`
		Replaces       string                `json:"replaces"`
		Ask            int32                 `json:"ask"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	t, err := d.transition(v.TransitionName)
	if err != nil {
		return nil, err
	}
	if v.Arrival != d.arrivals+1 {
		return nil, &DecodeError{"arrival", strconv.Itoa(int(v.Arrival))}
	}
	p := &Proposed{Ask: v.Ask, Proposal: specialist.Proposal{
		SpecialistID: v.SpecialistID, IsHuman: v.IsHuman, Transition: t, Reasoning: v.Reasoning, MetaJSON: v.MetaJSON,
		Usage: v.value(), CreatedAt: at, Arrival: v.Arrival, Mode: specialist.SourceNamed(v.Mode),
	}}
	if v.Model != "" || v.ToolCalls != nil || v.OptionOrder != nil || v.AskID != "" {
		p.Detail = &specialist.Detail{Model: v.Model, ToolCalls: v.ToolCalls, OptionOrder: v.OptionOrder, AskID: v.AskID}
	}
	if v.Replaces != "" {
		key := d.session.Key()
		for i := v.Arrival - 1; i > 0 && p.Replaces == 0; i-- {
			if key.ProposalID(i) == v.Replaces {
				p.Replaces = i
			}
		}
	}
	return p, nil
}

func (d *reading) askFailed() (Data, error) {
	var v struct {
		usage
		SpecialistID string       `json:"specialistId"`
		Ask          int32        `json:"ask"`
		Role         machine.Role `json:"role"`
		Code         string       `json:"code"`
		Message      string       `json:"message"`
		Model        string       `json:"model"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	role, err := roleOr(v.Role)
	return &AskFailed{v.SpecialistID, v.Ask, role, v.Code, v.Message, v.value(), v.Model}, err
}

func (d *reading) discarded() (Data, error) {
	var v struct {
		usage
		SpecialistID   string      `json:"specialistId"`
		Round          int32       `json:"round"`
		Attempt        int32       `json:"attempt"`
		Ask            int32       `json:"ask"`
		TransitionName string      `json:"transitionName"`
		Code           string      `json:"code"`
		Model          string      `json:"model"`
		Charged        exact.Money `json:"charged"`
		ChargedIn      int64       `json:"chargedInputTokens"`
		ChargedOut     int64       `json:"chargedOutputTokens"`
	}
	err := d.into(&v)
	return &Discarded{v.SpecialistID, v.Round, v.Attempt, v.Ask, v.TransitionName, v.Code, v.value(), v.Model, v.Charged, v.ChargedIn, v.ChargedOut}, err
}

func (d *reading) probed() (Data, error) {
	var v struct {
		usage
		Guard    string   `json:"guard"`
		Ask      int32    `json:"ask"`
		Stage    string   `json:"stage"`
		Question string   `json:"question"`
		Reply    string   `json:"reply"`
		Value    *float64 `json:"value"`
		Code     string   `json:"code"`
		Message  string   `json:"message"`
		Model    string   `json:"model"`
		Free     bool     `json:"free"`
	}
	err := d.into(&v)
	return &Probed{v.Guard, v.Ask, v.Stage, v.Question, v.Reply, v.Value, v.Code, v.Message, v.value(), v.Model, v.Free}, err
}

func (d *reading) judged() (Data, error) {
	var v struct {
		usage
		Model            string             `json:"model"`
		Index            int32              `json:"index"`
		Ask              int32              `json:"ask"`
		ArbiterID        string             `json:"arbiterId"`
		Strategy         string             `json:"strategy"`
		ConsensusReached bool               `json:"consensusReached"`
		Winner           int                `json:"winner"`
		Rule             arbiter.Rule       `json:"rule"`
		Reasoning        string             `json:"reasoning"`
		Subject          string             `json:"subject"`
		Weight           exact.Billionths   `json:"weight"`
		HasMargin        bool               `json:"hasMargin"`
		Margin           exact.Billionths   `json:"margin"`
		Threshold        *machine.Threshold `json:"threshold"`
		Order            []int32            `json:"order"`
		Weights          []exact.Billionths `json:"weights"`
		Evidence         *JudgedBy          `json:"evidence"`
		Explanation      *trust.Judgement   `json:"explanation"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	j := &Judged{Evidence: v.Evidence, Index: v.Index, Ask: v.Ask, ArbiterID: v.ArbiterID, Strategy: v.Strategy, Order: v.Order, Weights: v.Weights, Threshold: v.Threshold, Margin: v.Margin, Usage: v.value(), Model: v.Model}
	j.Decision = arbiter.Decision{Winner: arbiter.NoWinner, Rule: v.Rule, Subject: v.Subject, Weight: v.Weight, HasMargin: v.HasMargin, Threshold: thresholdOr(v.Threshold)}
	if v.ConsensusReached {
		j.Decision.Winner = v.Winner
		if v.Winner < 0 || v.Winner >= len(v.Order) {
			return nil, &DecodeError{"winner", strconv.Itoa(v.Winner)}
		}
	}
	if v.HasMargin {
		j.Decision.Margin = v.Margin
	}
	if e := v.Explanation; e != nil {
		e.Best, e.Winner = slices.Index(e.Options, e.Pick), j.Decision.Winner
		j.Decision.Judgement = e
	} else if v.Rule == arbiter.ByJudgement {
		return nil, &DecodeError{"explanation", ""}
	}
	if e := v.Evidence; e != nil && len(e.Versions) != len(v.Order) {
		return nil, &DecodeError{"versions", fmt.Sprint(e.Versions)}
	}
	if len(v.Order) != len(v.Weights) {
		return nil, &DecodeError{"weights", fmt.Sprint(v.Weights)}
	}
	if v.Rule == arbiter.Custom {
		j.Decision.Text = v.Reasoning
	}
	return j, nil
}

// thresholdOr returns the threshold that is compared with where none is set.
func thresholdOr(t *machine.Threshold) machine.Threshold {
	if t != nil {
		return *t
	}
	return machine.Threshold{Given: 1, Weight: exact.One}
}

func (d *reading) gated() (Data, error) {
	var v struct {
		TransitionName string `json:"transitionName"`
		IsHuman        bool   `json:"isHuman"`
		Status         string `json:"status"`
		Reasons        []struct {
			Code    string  `json:"code"`
			Guard   string  `json:"guard"`
			Class   string  `json:"class"`
			Message string  `json:"message"`
			Limit   string  `json:"limit"`
			Seen    string  `json:"observed"`
			Subject string  `json:"subject"`
			Indices []int32 `json:"indices"`
			Part    string  `json:"part"`
			Call    int     `json:"call"`
			Offset  int     `json:"offset"`
			Length  int     `json:"length"`
		} `json:"reasons"`
		Notices []string `json:"notices"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	t, err := d.transition(v.TransitionName)
	if err != nil {
		return nil, err
	}
	g := &Gated{Transition: t, IsHuman: v.IsHuman, Verdict: guard.Verdict{Notices: v.Notices}}
	var ok bool
	if g.Verdict.Status, ok = guard.StatusNamed(v.Status); !ok {
		return nil, &DecodeError{"status", v.Status}
	}
	for _, r := range v.Reasons {
		class, ok := guard.StatusNamed(r.Class)
		if !ok {
			return nil, &DecodeError{"class", r.Class}
		}
		reason := guard.Reason{Code: r.Code, Guard: r.Guard, Class: class, Message: r.Message, Limit: r.Limit, Seen: r.Seen, Subject: r.Subject, Indices: r.Indices}
		if r.Part != "" {
			reason.Found = &guard.Finding{Part: r.Part, Call: r.Call, Offset: r.Offset, Length: r.Length}
		}
		g.Verdict.Reasons = append(g.Verdict.Reasons, reason)
	}
	return g, nil
}

func (d *reading) executed(at specialist.Time) (Data, error) {
	var v struct {
		Decision       string          `json:"decision"`
		TransitionName string          `json:"transitionName"`
		IsHuman        bool            `json:"isHuman"`
		SpecialistID   string          `json:"specialistId"`
		Arrival        int32           `json:"arrival"`
		Reasoning      string          `json:"reasoning"`
		MetaJSON       json.RawMessage `json:"metaJson"`
		Draws          *Draws          `json:"draws"`
		Standing
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	t, err := d.transition(v.TransitionName)
	if err != nil {
		return nil, err
	}
	if len(v.Order) != len(v.Weights) {
		return nil, &DecodeError{"weights", fmt.Sprint(v.Weights)}
	}
	e := &Executed{Transition: t, IsHuman: v.IsHuman, SpecialistID: v.SpecialistID, Arrival: v.Arrival, Reasoning: v.Reasoning, MetaJSON: v.MetaJSON,
		At: at, Round: d.session.Round, Attempt: d.session.Attempt, Draws: v.Draws}
	for i, name := range decisionKinds {
		if name == v.Decision {
			e.How = DecisionKind(i)
			if e.How != ByConsensus {
				e.Standing = &v.Standing
			}
			return e, nil
		}
	}
	return nil, &DecodeError{"decision", v.Decision}
}

func (d *reading) learned(at specialist.Time) (Data, error) {
	var v struct {
		Comparisons []struct {
			SpecialistID string `json:"specialistId"`
			State        string `json:"state"`
			Match        bool   `json:"match"`
		} `json:"comparisons"`
		Exemplar *specialist.Exemplar `json:"exemplar"`
		Outcome  json.RawMessage      `json:"outcome"`
		Held     json.RawMessage      `json:"held"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	if e := v.Exemplar; e != nil && (e.Context == nil || e.Proposals == nil) {
		return nil, &DecodeError{"exemplar", e.ExemplarID}
	}
	l := &Learned{Exemplar: v.Exemplar}
	for _, o := range []struct {
		text json.RawMessage
		into **trust.Outcome
	}{{v.Outcome, &l.Outcome}, {v.Held, &l.Held}} {
		if o.text == nil {
			continue
		}
		outcome, err := trust.DecodeOutcome(o.text)
		if err != nil {
			return nil, err
		}
		*o.into = &outcome
	}
	for _, c := range v.Comparisons {
		l.Comparisons = append(l.Comparisons, trust.Comparison{Key: trust.Key{SpecialistID: c.SpecialistID, State: c.State}, Match: c.Match, At: at})
	}
	return l, nil
}

func (d *reading) reviewed() (Data, error) {
	var v struct {
		Review         ReviewKind      `json:"review"`
		Round          int32           `json:"round"`
		Attempt        int32           `json:"attempt"`
		SpecialistID   string          `json:"specialistId"`
		TransitionName string          `json:"transitionName"`
		Reasoning      string          `json:"reasoning"`
		Lesson         json.RawMessage `json:"lesson"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	if v.Review != Audit && v.Review != SecondLook && v.Review != Adjudication {
		return nil, &DecodeError{"review", string(v.Review)}
	}
	r := &Reviewed{Review: v.Review, Round: v.Round, Attempt: v.Attempt, SpecialistID: v.SpecialistID, TransitionName: v.TransitionName, Reasoning: v.Reasoning}
	if v.Lesson == nil {
		return r, nil
	}
	lesson, err := trust.DecodeLesson(v.Lesson)
	r.Lesson = &lesson
	return r, err
}

func (d *reading) ended() (Data, error) {
	var v struct {
		Status Status `json:"status"`
		Code   string `json:"code"`
		Reason string `json:"reason"`
	}
	err := d.into(&v)
	return &Ended{v.Status, v.Code, v.Reason}, err
}
