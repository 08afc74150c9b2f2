package machine

import _ "embed" // for the schema below

// fileSchema is written by hand; a test holds it to what Parse accepts. It is a
// string so that nobody can change it.
//
//go:embed schema.json
var fileSchema string

// FileSchema returns the published JSON Schema (draft 2020-12) of machine files,
// for editors, form builders and other languages. It accepts what [Parse]
// accepts but for what no JSON Schema can say, such as that a transition's
// target exists; it refuses nothing that Parse accepts. The caller owns the
// result. The repository publishes the same bytes as
// schema/machine.schema.json.
func FileSchema() []byte { return []byte(fileSchema) }
