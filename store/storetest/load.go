package storetest

import (
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Loaded is a store whose loads are measured.
type Loaded struct {
	session.Store
	Forget   func()                                    // what was cached
	Snapshot func(id specialist.SessionID) (seq int64) // once all are written
	Drop     func()                                    // all snapshots
}

// BenchLoad measures loads of sessions of which nothing is cached, of 20 and of 1,000 transitions: of the
// latter also when nearly as many events stand behind its snapshot as may, and without a snapshot.
func BenchLoad(b *testing.B, s Loaded) {
	programs := session.NewPrograms()
	took := map[string]float64{}
	measure := func(name string, id specialist.SessionID) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Forget()
				if _, err := s.Load(b.Context(), programs, id); err != nil {
					b.Fatal(err)
				}
			}
			took[name] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if first := took["20"]; first > 0 {
				b.ReportMetric(took[name]/first, "x-20")
			}
		})
	}
	short, long := Long(b, s, 20), Long(b, s, 1000)
	s.Snapshot(long)
	measure("20", short)
	measure("1000", long)
	for n := 1; n < 100; n++ {
		now, err := s.Load(b.Context(), programs, long)
		if err != nil {
			b.Fatal(err)
		}
		if behind := now.Sequence - s.Snapshot(long); behind > 230 {
			b.Logf("%d events behind the snapshot", behind)
			break
		}
		Rule(b, s, long, 1)
	}
	measure("1000-and-a-long-tail", long)
	s.Drop()
	measure("1000-without-snapshot", long)
}
