// Package batch finds batches of tool calls that come again and again.
//
// All calls of one turn are a [Batch]: which tools, with which arguments, in any order. A
// batch is known by a hash of its canonical form, which leaves out what differs between
// calls that do the same. A [Loop] counts how often a batch is in a window of the last
// ones, and warns, blocks, asks for a human or stops. It keeps nothing itself: a [State]
// goes in, and the next one comes out.
package batch
