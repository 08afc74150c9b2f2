package projection

// toldEvery is after how many rows it is told how far a part is.
const toldEvery = 1000

// A Part of bringing a store up to date takes as long as there are rows, and tells how far it is.
type Part struct {
	name     string
	done, of int64
	told     func(part string, done, of int64)
}

// NewPart begins a part of as many rows. Where there are none it tells nothing.
func NewPart(name string, of int64, told func(part string, done, of int64)) *Part {
	return &Part{name: name, of: of, told: told}
}

// Next counts a row.
func (p *Part) Next() {
	if p.done++; p.done%toldEvery == 0 && p.done < p.of {
		p.told(p.name, p.done, p.of)
	}
}

// End says that all are done.
func (p *Part) End() {
	if p.of > 0 {
		p.told(p.name, p.of, p.of)
	}
}
