package webhook

// What only the tests of this package need.
const (
	MaxContext        = maxContext
	DefaultTokenNames = defaultTokenNames
	Tolerance         = tolerance
)

var (
	ReadConsensus      = readConsensus
	ReadContext        = readContext
	ReadClassification = readClassification
)
