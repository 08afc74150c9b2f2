package machine

import "errors"

// The rules about how a specialist is asked, in the words and the order of
// DIAL. They hold for files and for registration alike.

// Errors of CheckMode that programs ask for by name.
var (
	// ErrNoMode is wrapped when a specialist does not say how it is asked.
	ErrNoMode = errors.New("no execution mode")
)

// A ModeError says why a specialist's execution mode is unusable. Its text is
// DIAL's.
type ModeError struct {
	message string
	none    bool
}

func (e *ModeError) Error() string { return e.message }

// Is makes errors.Is(err, ErrNoMode) true if no mode was given at all.
func (e *ModeError) Is(target error) bool { return e.none && target == ErrNoMode }

const (
	bothStrategies   = "Provide either strategyFn (custom function) or strategyFnName (built-in strategy), not both."
	webhookUntokened = "Webhook URLs require webhookTokenName for authentication."
	modelUnused      = "modelId is only used with contextFn or contextWebhookUrl. "
)

// CheckMode returns a *ModeError unless s names exactly one execution mode that
// its role may have. A human needs none.
func (s *Specialist) CheckMode() error {
	if s.Role == Arbiter {
		return s.checkArbiterMode()
	}
	return s.checkProposerMode()
}

// A modeRule is one row of the table of forbidden combinations.
type modeRule struct {
	broken  bool
	message string
}

func firstBroken(rules []modeRule) error {
	for _, r := range rules {
		if r.broken {
			return &ModeError{message: r.message}
		}
	}
	return nil
}

func (s *Specialist) checkProposerMode() error {
	fn, name, url := s.StrategyFn != "", s.StrategyFnName != "", s.StrategyWebhookURL != ""
	ctxFn, ctxURL, model := s.ContextFn != "", s.ContextWebhookURL != "", s.ModelID != ""
	untold := `You must also specify modelId.`
	if err := firstBroken([]modeRule{
		{fn && name, bothStrategies},
		{fn && model, modelUnused + "A strategyFn returns proposals directly and does not need a model."},
		{name && model, modelUnused + "A strategyFnName references a built-in strategy and does not need a model."},
		{fn && ctxFn, "Provide either strategyFn (you handle everything) or contextFn + modelId (orchestrator calls the LLM), not both."},
		{ctxFn && !model, "contextFn provides context for an LLM to generate proposals. " + untold},
		{ctxURL && !model, "contextWebhookUrl provides context for an LLM to generate proposals. " + untold},
		{(url || ctxURL) && s.WebhookTokenName == "", webhookUntokened},
	}); err != nil {
		return err
	}
	switch n := count(fn, name, url, ctxFn, ctxURL, s.Agent != ""); {
	case n == 0 && s.IsHuman && !model:
		return nil
	case n == 0:
		return &ModeError{none: true, message: "No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, strategyWebhookUrl, contextFn + modelId, or contextWebhookUrl + modelId."}
	case n > 1 || (url || s.Agent != "") && model:
		return &ModeError{message: "Multiple execution modes specified for proposer. Must provide exactly one."}
	}
	return nil
}

func (s *Specialist) checkArbiterMode() error {
	fn, name, url := s.StrategyFn != "", s.StrategyFnName != "", s.StrategyWebhookURL != ""
	if err := firstBroken([]modeRule{
		{fn && name, bothStrategies},
		{url && s.WebhookTokenName == "", webhookUntokened},
		{s.ContextFn != "" || s.ContextWebhookURL != "" || s.ModelID != "" || s.Agent != "", "Arbiters cannot use LLM-based modes. Arbitration must be deterministic."},
	}); err != nil {
		return err
	}
	switch count(fn, name, url) {
	case 0:
		return &ModeError{none: true, message: "No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, or strategyWebhookUrl."}
	case 1:
		return nil
	}
	return &ModeError{message: "Multiple execution modes specified for arbiter. Must provide exactly one."}
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
