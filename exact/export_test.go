package exact

// Decimal reads a number in billionths, as a log has it.
func Decimal(text string) (int64, bool) { return decimal([]byte(text), 9) }
