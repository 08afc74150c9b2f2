package llm

// MaxContext is what the tests of prompts need.
const MaxContext = maxContext
