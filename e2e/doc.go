// Package e2e holds tests that run the real program in processes of its own, kill
// them, and look at what is left.
package e2e
