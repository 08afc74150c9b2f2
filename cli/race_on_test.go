//go:build race

package cli_test

// everyScript says that every so many of the scripts is run here, and another one at a server: the race
// detector looks for something else than what they compare, and takes five times as long.
const everyScript = 6
