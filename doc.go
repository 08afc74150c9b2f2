// Package dialai is a multi-agent consensus state-machine engine. There is nothing in
// it but the tests of what is true of the project as a whole: package cli is the
// program, package runner the engine, and ARCHITECTURE.md says how they fit together.
package dialai
