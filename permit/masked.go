package permit

import "encoding/json"

// Masked returns the input of a tool of that name with what looks like a secret masked, as
// sessions keep it.
func Masked(tool string, input json.RawMessage) json.RawMessage {
	return masked(input, tools[tool] == kindShell)
}

// Stashes reports whether the input of a shell tool runs git stash, which is denied
// everywhere: there is one stash for all worktrees.
func Stashes(input json.RawMessage) bool {
	f, err := lookAt(Prompt{Tool: "Bash", Input: input, Cwd: "/"}, Settings{Secret: make([]byte, secretSize)})
	return err == nil && f.Listed == string(Deny)
}
