// Package explain says why a round went so, and what would have changed it.
//
// [Round] reads one attempt at a round from the log of its session: the votes, the
// verdict, the guards, the human who ruled. Then it decides the recorded round again with
// one thing different, vote by vote, from what was known at that time. It stands on what
// a [runner.Runner] has recorded and drives nothing: nobody is asked, nothing is written.
// An [Explanation] is plain data; `dialai explain` makes its text of it.
package explain
