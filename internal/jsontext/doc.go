// Package jsontext reads and writes JSON that must come out the same on every machine:
// strictly (no member twice, no half of a surrogate pair, no depth without end), and in
// the canonical form of RFC 8785. Nothing here does I/O, and everything but a [Cursor]
// may be used concurrently.
package jsontext
