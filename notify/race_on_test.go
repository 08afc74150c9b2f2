//go:build race

package notify_test

// kills is how many processes TestKilled kills under the race detector, which makes each some ten times
// slower, and whose reports from a process that is killed fail nothing.
const kills = 10
