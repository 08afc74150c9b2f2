package prom

import "github.com/dialai/dialai/internal/lru"

// busiest says which names are counted by themselves: the first that come, and once there is no
// room those with which more happens than with one that has a place. Names that come once each,
// however many, displace none that is busy, and what is remembered of them is bounded.
type busiest struct {
	limit  int
	placed map[string]int64          // how much has happened, by names that have a place
	others *lru.Cache[string, int64] // likewise, of some that have none
}

// other is the label of all names that are not counted by themselves.
const other = "other"

func newBusiest(limit int) busiest {
	return busiest{limit: limit, placed: map[string]int64{}, others: lru.New[string, int64](4 * limit)}
}

// take counts n things that happen with a name, and returns as what. The name that has lost
// its place, if any, is out.
func (b *busiest) take(name string, n int64) (label, out string) {
	if name == other {
		return other, ""
	}
	if _, ok := b.placed[name]; ok || len(b.placed) < b.limit {
		b.placed[name] += n
		return name, ""
	}
	if n == 0 {
		return other, ""
	}
	had, _ := b.others.Get(name)
	had += n
	least, fewest := "", had
	for of, count := range b.placed {
		if count < fewest || count == fewest && least != "" && of < least {
			least, fewest = of, count
		}
	}
	if least == "" {
		b.others.Put(name, had)
		return other, ""
	}
	b.others.Delete(name)
	b.others.Put(least, fewest)
	delete(b.placed, least)
	b.placed[name] = had
	return name, least
}
