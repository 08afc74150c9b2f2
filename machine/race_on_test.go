//go:build race

package machine_test

// stride says that every so many of a large number of documents is looked at: all of them
// without the race detector, which looks for something else and takes 5 times as long.
const stride = 9
