//go:build race

package sim_test

// defaultSeeds is how many seeds are played under the race detector, which is slow.
const defaultSeeds = 20
