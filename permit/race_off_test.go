//go:build !race

package permit

// stride says that a property is held to with every so many of the lines.
const stride = 1
