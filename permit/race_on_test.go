//go:build race

package permit

// stride says that a property is held to with every so many of the lines: all of them without the
// race detector, which looks for something else and takes 5 times as long.
const stride = 7
