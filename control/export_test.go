package control

// Beside returns the Store of another process that shares the data.
func (m *Memory) Beside() *Memory { return m.shared.process() }

// Matches reports whether a name is of the form of a glob.
func Matches(glob, name string) bool { return matches(glob, name) }

// Kept returns how many receipts and claims are held.
func (m *Memory) Kept() (receipts, claims int) {
	return max(len(m.receipts), len(m.born)), len(m.claims)
}
