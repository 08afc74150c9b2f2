package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// The payload of a ruling or a proposal, which is its metaJson: how it is given on the
// command line, and what is printed for people to fill in.

// maxPayload is how much of stdin is read as a payload; more is refused anyhow.
const maxPayload = 64 << 10

// payload reads what --data gives: one JSON value, one on stdin (-), or members of an
// object (name=value), each read by its type in the parameters of the transition, which
// may be nil. It returns nil if there is none.
func (a *app) payload(texts []string, t *machine.Transition) (json.RawMessage, error) {
	switch {
	case len(texts) == 0, len(texts) == 1 && texts[0] == "":
		return nil, nil
	case len(texts) == 1 && texts[0] == "-":
		return a.stdinPayload()
	case len(texts) == 1 && !isMember(texts[0]):
		return parsePayload("--data", texts[0])
	}
	var s payloads.Schema
	if t != nil && t.Parameters != nil {
		_ = json.Unmarshal([]byte(t.Parameters.String()), &s) // true and false say nothing of members
	}
	return members(&s, texts)
}

func (a *app) stdinPayload() (json.RawMessage, error) {
	data, err := io.ReadAll(io.LimitReader(a.In, maxPayload+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxPayload:
		return nil, command.Usage("--data -: stdin holds more than %d bytes", maxPayload)
	}
	return parsePayload("--data -: stdin", string(data))
}

func parsePayload(what, text string) (json.RawMessage, error) {
	value, err := jsontext.Tidy([]byte(text))
	switch {
	case err == nil:
		return value, nil
	case strings.Contains(text, payloads.Placeholder):
		return nil, command.Hinted(command.Usage("%s still has a %s where a value belongs", what, payloads.Placeholder), "write a value in the place of each %s", payloads.Placeholder)
	}
	return nil, command.Hinted(command.Usage("%s is not one JSON value: %v", what, err), `for example --data '{"amount":120}' or --data amount=120`)
}

// isMember reports whether a text is name=value, and not JSON that has a = in it.
func isMember(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && name != "" && !strings.ContainsAny(text[:1], "{[\"")
}

// dataWords returns a payload as words of a command.
func dataWords(payload string) []string {
	if payload == "" {
		return nil
	}
	return []string{"--data", payload}
}

// choiceOf returns a choice of a question by its name.
func choiceOf(q runner.Question, name string) (t session.InboxTransition) {
	if i := slices.IndexFunc(q.Transitions, func(t session.InboxTransition) bool { return t.Name == name }); i >= 0 {
		t = q.Transitions[i]
	}
	return t
}

// accepted returns what --accept is to rule for: the proposal of a specialist, or the ruling of
// a human that waits for others.
func accepted(q runner.Question, who string) (p render.Proposal, err error) {
	if i := slices.IndexFunc(q.Rulings, func(r session.QuestionRuling) bool { return r.SpecialistID == who }); i >= 0 {
		r := q.Rulings[i]
		return render.Proposal{SpecialistID: who, TransitionName: r.TransitionName, MetaJSON: r.MetaJSON}, nil
	}
	if w := q.Withheld; w != nil {
		return p, command.Hinted(command.Usage("--accept %s: what was proposed in this round is withheld", who), "name the transition that you choose; --show-proposals shows what was proposed, which is recorded")
	}
	var names []string
	for _, raw := range q.Proposals {
		if err := json.Unmarshal(raw, &p); err != nil {
			return p, err
		}
		if p.SpecialistID == who {
			return p, nil
		}
		names = append(names, p.SpecialistID)
	}
	err = command.Usage("--accept %s: there is no proposal of that specialist in this round", who)
	switch near := machine.DidYouMean(who, names); {
	case near != "":
		return p, command.Hinted(err, "%s", near)
	case len(names) > 0:
		return p, command.Hinted(err, "there are those of: %s", strings.Join(names, ", "))
	}
	return p, err
}

// members makes an object of texts that are name=value.
func members(s *payloads.Schema, texts []string) (json.RawMessage, error) {
	var o jsontext.Object
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		switch {
		case !isMember(text):
			return nil, command.Hinted(command.Usage("--data %q is not name=value, as the others are", text), "give one JSON value, or each member for itself")
		case o.Has(name):
			return nil, command.Usage("--data gives %q twice", name)
		}
		member := s.Member(name)
		v, err := member.Read(value)
		if err != nil {
			return nil, command.Usage("--data %s: %v", name, err)
		}
		o = o.With([]jsontext.Member{{Name: name, Value: v}})
	}
	return o.JSON(), nil
}
