//go:build !race

package notify_test

// kills is how many processes TestKilled kills.
const kills = 100
