package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
	"github.com/dialai/dialai/verdict"
)

func (d *reading) judged() (Data, error) {
	var v struct {
		UsageJSON
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
		Quorum           *arbiter.Quorum    `json:"quorum"`
		ParametersBind   bool               `json:"parametersBind"`
		Evidence         *JudgedBy          `json:"evidence"`
		Explanation      *trust.Judgement   `json:"explanation"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	j := &Judged{Evidence: v.Evidence, Index: v.Index, Ask: v.Ask, ArbiterID: v.ArbiterID, Strategy: v.Strategy, Order: v.Order, Weights: v.Weights, Threshold: v.Threshold, Margin: v.Margin, Usage: v.Usage(), Model: v.Model}
	j.Decision = arbiter.Decision{Winner: arbiter.NoWinner, Rule: v.Rule, Subject: v.Subject, Weight: v.Weight, HasMargin: v.HasMargin, Threshold: thresholdOr(v.Threshold), Quorum: v.Quorum, Bound: v.ParametersBind}
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
	if v.Rule == arbiter.Custom || v.Rule == arbiter.NoQuorum {
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
	g := &Gated{Transition: t, IsHuman: v.IsHuman, Verdict: verdict.Verdict{Notices: v.Notices}}
	var ok bool
	if g.Verdict.Status, ok = verdict.StatusNamed(v.Status); !ok {
		return nil, &DecodeError{"status", v.Status}
	}
	for _, r := range v.Reasons {
		class, ok := verdict.StatusNamed(r.Class)
		if !ok {
			return nil, &DecodeError{"class", r.Class}
		}
		reason := verdict.Reason{Code: r.Code, Guard: r.Guard, Class: class, Message: r.Message, Limit: r.Limit, Seen: r.Seen, Subject: r.Subject, Indices: r.Indices}
		if r.Part != "" {
			reason.Found = &verdict.Finding{Part: r.Part, Call: r.Call, Offset: r.Offset, Length: r.Length}
		}
		g.Verdict.Reasons = append(g.Verdict.Reasons, reason)
	}
	return g, nil
}

func (d *reading) ruled() (Data, error) {
	var v struct {
		SpecialistID   string          `json:"specialistId"`
		TransitionName *string         `json:"transitionName"`
		MetaJSON       json.RawMessage `json:"metaJson"`
		Reasoning      string          `json:"reasoning"`
		QuestionDigest string          `json:"questionDigest"`
		Blind          bool            `json:"blind"`
		Decision       string          `json:"decision"`
		Draws          *Draws          `json:"draws"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	r := &Ruled{SpecialistID: v.SpecialistID, MetaJSON: v.MetaJSON, Reasoning: v.Reasoning, QuestionDigest: v.QuestionDigest, Blind: v.Blind,
		Direct: v.Decision == Direct.String(), Draws: v.Draws}
	switch {
	case v.SpecialistID == "":
		return nil, &DecodeError{"specialistId", ""}
	case v.Decision != "" && !r.Direct:
		return nil, &DecodeError{"decision", v.Decision}
	case v.TransitionName == nil:
		return r, nil
	}
	var err error
	r.Transition, err = d.transition(*v.TransitionName)
	return r, err
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
		Authors        []string        `json:"authors"`
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
		At: at, Round: d.session.Round, Attempt: d.session.Attempt, Draws: v.Draws, Authors: v.Authors}
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
		Second   *trust.SecondLook    `json:"secondLook"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	if e := v.Exemplar; e != nil && (e.Context == nil || e.Proposals == nil) {
		return nil, &DecodeError{"exemplar", e.ExemplarID}
	}
	l := &Learned{Exemplar: v.Exemplar, Second: v.Second}
	if v.Second != nil {
		if err := (&trust.Lesson{Second: v.Second}).Check(); err != nil {
			return nil, err
		}
	}
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

func (d *reading) adopted() (Data, error) {
	var v struct {
		SpecialistID string          `json:"specialistId"`
		Reason       string          `json:"reason"`
		Lesson       json.RawMessage `json:"lesson"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	lesson, err := trust.DecodeLesson(v.Lesson)
	if err == nil && lesson.Adoption == nil {
		err = &DecodeError{"adoption", "nothing"}
	}
	return &Adopted{v.SpecialistID, v.Reason, &lesson}, err
}

func (d *reading) ended() (Data, error) {
	var v struct {
		Status Status `json:"status"`
		Code   string `json:"code"`
		Reason string `json:"reason"`
		Actor  *Actor `json:"actor"`
	}
	err := d.into(&v)
	return &Ended{v.Status, v.Code, v.Reason, v.Actor}, err
}
