//go:build !race

package cli_test

// everyScript says that every so many of the scripts is run at a server: all of them.
const everyScript = 1
