package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// classifierUser is who calls a classifier, to Basic authentication.
const classifierUser = "dialai"

// Completer knows nobody: no truth gate asks a service.
func (c *Client) Completer(string) (truth.Completer, error) { return nil, nil }

// Classifier returns a classifier that asks the section's url, with the token in
// the variable it names; nil if it has none. A question is {stage, text, meta}, the answer {verdict,
// score, code} and what it has cost.
func (c *Client) Classifier(section *guard.ClassifierConfig) (guard.Classifier, error) {
	if section.URL == "" {
		return nil, nil
	}
	e, err := c.prepare(classifierUser, section.TokenName, "", section.URL)
	if err != nil {
		return nil, err
	}
	return classifier{e}, nil
}

// A classifier is an endpoint that classifies.
type classifier struct{ *endpoint }

// Classify implements guard.Classifier.
func (p classifier) Classify(ctx context.Context, q guard.Classification) (a guard.ClassifierAnswer, err error) {
	type meta struct {
		Task  string   `json:"task_id"`
		State string   `json:"state,omitempty"`
		Tool  string   `json:"tool,omitempty"`
		Model string   `json:"model,omitempty"`
		Turns []string `json:"turns,omitempty"`
	}
	body, err := json.Marshal(struct {
		Stage string `json:"stage"`
		Text  string `json:"text"`
		Meta  meta   `json:"meta"`
	}{q.Stage, q.Text, meta(q.Meta)})
	if err != nil {
		return a, err
	}
	// The key is that of the question, not of the ask: one that was lost is asked anew as
	// another ask, and who has been paid for judging the text need not be again.
	sum := sha256.Sum256(body)
	id := hex.EncodeToString(sum[:16])
	one := &call{endpoint: p.endpoint, ask: specialist.Ask{ID: id}, round: id, body: body, label: Label{Kind: "classifier", State: q.Meta.State}}
	if by := specialist.CallerOf(ctx); by.SpecialistID != "" {
		one.label = Label{"classifier", by.SpecialistID, by.State, by.Round, by.Attempt, by.Nth}
	}
	answer, err := one.atOnce(ctx)
	if err == nil {
		a, err = readClassification(answer)
		a.Code = one.scrub(a.Code)
	}
	a.Usage = one.spent(a.Usage)
	return a, one.clean(err)
}

// readClassification reads the answer of a classifier: a verdict, by the name of
// one of the guards' statuses, and where they are given a score from 0 to 1, a
// code and what the answer has cost. What it has cost is returned along with an
// error.
func readClassification(body []byte) (a guard.ClassifierAnswer, err error) {
	o, err := readObject(body)
	if err != nil {
		return a, err
	}
	if a.Usage, err = o.usage(); err != nil {
		return a, err
	}
	var name string
	if err := o.text("verdict", &name); err != nil {
		return a, err
	}
	status, known := verdict.StatusNamed(name)
	if !known {
		return a, badAnswer("verdict is not one of ok, warn, retry, escalate and abort")
	}
	if err := o.text("code", &a.Code); err != nil {
		return a, err
	}
	text, given, err := o.number("score")
	if err != nil {
		return a, err
	}
	if given {
		if a.Score, err = strconv.ParseFloat(text, 64); err != nil || a.Score < 0 || a.Score > 1 {
			return a, badAnswer("score is not a number from 0 to 1")
		}
	}
	a.Verdict = status
	return a, nil
}
