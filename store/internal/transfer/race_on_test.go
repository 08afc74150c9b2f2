//go:build race

package transfer_test

// fewer is by how much fewer steps are tried where the race detector makes each some ten times slower.
const fewer = 6
