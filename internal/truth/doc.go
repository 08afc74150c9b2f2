// Package truth asks whether an answer follows what is true, before it is used.
//
// [Gate] puts a [Candidate] through three probes, each of which asks a model
// ([Completer]) and measures one score: whether the answer is certain, whether it would
// change if it were false (sensitivity), and whether it stays where nothing that matters
// changes (adherence). [Decide] holds the scores against [Thresholds], in this order; the
// first that fails names the verdict. What the answer and, if wanted, the probes cost is
// counted by a [Ledger], which can stop the gate between any two calls. Whatever fails on
// the way escalates to a human: a gate never passes because something broke.
//
// A [Section] is the gate of a machine file as plain data; [Parse] reads that of a gate
// that stands alone.
package truth
