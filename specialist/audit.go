package specialist

import "github.com/dialai/dialai/exact"

// An AuditEntry is one attempt at asking a model, as it is kept: DIAL's
// LlmAuditEntry. Headers and bodies hold no key; how much of the bodies there is
// depends on how auditing was set up.
type AuditEntry struct {
	AuditEntryID    string            `json:"auditEntryId"`
	SessionID       string            `json:"sessionId"` // "" for a call of no session
	SpecialistID    string            `json:"specialistId"`
	MachineName     *string           `json:"machineName"`
	Timestamp       Time              `json:"timestamp"`
	RequestURL      string            `json:"requestUrl"`
	RequestHeaders  map[string]string `json:"requestHeaders"`
	RequestBody     string            `json:"requestBody"`
	ResponseStatus  int               `json:"responseStatus"` // 0 if nothing came back
	ResponseBody    string            `json:"responseBody"`
	ResolvedModel   string            `json:"resolvedModel"` // that answered
	DurationMs      int64             `json:"durationMs"`
	Error           *string           `json:"error"`
	Attempt         int32             `json:"attempt"` // from 1, of this ask or repair
	Purpose         string            `json:"purpose"` // ask, repair or probe
	Round           int32             `json:"round,omitempty"`
	NumInputTokens  int64             `json:"numInputTokens,omitempty"`
	NumOutputTokens int64             `json:"numOutputTokens,omitempty"`
	CostUSD         *exact.Money      `json:"costUSD,omitempty"` // if the provider named it
}
