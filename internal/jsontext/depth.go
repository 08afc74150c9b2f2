package jsontext

// Depth returns how deeply the brackets of a JSON text are nested.
func Depth(data []byte) (deepest int) {
	now := 0
	Punctuation(data, func(at int) {
		switch data[at] {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	})
	return deepest
}

// Punctuation calls f with the offset of every byte that is not in a string.
func Punctuation(data []byte, f func(at int)) {
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString:
			f(i)
		}
	}
}
