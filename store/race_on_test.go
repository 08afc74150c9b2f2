//go:build race

package store_test

// fewer is how many times fewer faults and flipped bits are tried under the race detector:
// it looks for races, and finds them in any of these lives.
const fewer = 45
