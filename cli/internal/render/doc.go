// Package render turns what commands find into text for a terminal, or into lines of JSON.
//
// A [Style] says how: each result has a method of it, named after the result, in a file
// named after the command. They write to the writer that they are given and return its
// error; they know nothing of flags, stores and the environment. Around them stand what all
// of them are made of: text.go makes foreign text fit for a terminal and for a shell,
// output.go writes tables and JSON, meter.go and terminal.go show how far work is.
package render
