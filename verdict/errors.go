package verdict

import "errors"

// ErrInput is wrapped by every error about a step that cannot be judged. Nothing
// was counted then.
var ErrInput = errors.New("invalid input")
