package llm

// MaxContext is what the tests of prompts need.
const MaxContext = maxContext

// ParseAuditMode is what the test of its words needs.
var ParseAuditMode = parseAuditMode
