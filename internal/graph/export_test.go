package graph

// Spread and Inversions let the tests compare two algorithms with plainer ones.
var (
	Spread     = spread
	Inversions = inversions
)
