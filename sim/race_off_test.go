//go:build !race

package sim_test

// defaultSeeds is how many seeds are played unless somebody says otherwise.
const defaultSeeds = 1000
