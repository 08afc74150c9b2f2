//go:build !linux

package process

import "time"

func keepThread() {}

// endAll ends the program's group: what left it cannot be found here.
func endAll(_ string, group int, _ time.Duration) (left []int) {
	killGroup(group)
	return nil
}

func killTree(pid int) { killGroup(pid) }

// Leftovers returns nothing: what runs cannot be seen here.
func Leftovers(string) []int { return nil }

// Marked returns nothing, likewise.
func Marked() map[string][]int { return nil }

// End ends nothing.
func End(string, time.Duration) []int { return nil }
