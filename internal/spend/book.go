package spend

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// A Book sums what was spent. Sums saturate.
type Book struct {
	Calls     int64
	TokensIn  int64
	TokensOut int64
	Money     exact.Money
	Unpriced  int64 // calls of models without a price
	Estimated int64 // asks charged as estimated
}

// Correct returns b after a call that was charged with an estimate turned out to have
// cost something else.
func (b Book) Correct(charged, real specialist.Usage) Book {
	return b.Plus(Book{
		Calls: real.Made() - charged.Made(), Money: real.CostUSD - charged.CostUSD,
		TokensIn: real.NumInputTokens - charged.NumInputTokens, TokensOut: real.NumOutputTokens - charged.NumOutputTokens,
	})
}

// amount returns what a book says that limits count.
func (b Book) amount() amount {
	return amount{exact.AddSat(b.TokensIn, b.TokensOut), b.Calls, b.Money}
}

// Plus returns the sum of both books, saturated.
func (b Book) Plus(c Book) Book {
	return Book{
		Calls: exact.AddSat(b.Calls, c.Calls), TokensIn: exact.AddSat(b.TokensIn, c.TokensIn), TokensOut: exact.AddSat(b.TokensOut, c.TokensOut),
		Money: b.Money.Add(c.Money), Unpriced: exact.AddSat(b.Unpriced, c.Unpriced), Estimated: exact.AddSat(b.Estimated, c.Estimated),
	}
}

// Minus returns the difference of both, which may be below zero.
func (b Book) Minus(c Book) Book {
	return Book{b.Calls - c.Calls, b.TokensIn - c.TokensIn, b.TokensOut - c.TokensOut, b.Money - c.Money, b.Unpriced - c.Unpriced, b.Estimated - c.Estimated}
}

// corrected returns b with one entry replaced. A sum that was cut off at the
// largest number is not known any more, so it stays there.
func (b Book) corrected(was, is Book) Book {
	swap := func(sum, was, is int64) int64 {
		if sum == maxInt64 {
			return sum
		}
		return exact.AddSat(sum-was, is)
	}
	return Book{
		Calls: swap(b.Calls, was.Calls, is.Calls), TokensIn: swap(b.TokensIn, was.TokensIn, is.TokensIn), TokensOut: swap(b.TokensOut, was.TokensOut, is.TokensOut),
		Money:    exact.Money(swap(int64(b.Money), int64(was.Money), int64(is.Money))),
		Unpriced: swap(b.Unpriced, was.Unpriced, is.Unpriced), Estimated: swap(b.Estimated, was.Estimated, is.Estimated),
	}
}
