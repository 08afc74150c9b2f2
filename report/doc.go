// Package report says how a machine is doing: how much is decided without humans, what is
// promised and what audits found of it, whom to trust, what was saved.
//
// Each report is a function over what a [runner.Runner] has recorded and how the machine
// decides now ([runner.Deciding]); it drives nothing and writes nothing. [MetricsOf] and
// [RisksOf] are of a machine, [TrustOf] and [CollapseOf] of its states,
// [EvaluateAlignment] and [EvaluateAccuracy] of one specialist. What they return is plain
// data with a stable JSON form.
package report
