package server

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/lru"
)

// How much one caller may ask for, so that it takes nothing from the others. Whoever has a key
// is counted by their key, apart for what reads and what writes; whoever has none by their
// address. Buckets of callers that have not called for long are forgotten, which fills them.

const (
	strangers   = rate.Limit(5) // requests without a valid credential, of an address in a second
	maxLogins   = 10            // attempts to sign in, of an address in a minute
	maxStreams  = 64            // of a caller at a time
	maxCallers  = 10_000        // of whom buckets are kept, at least
	maxConns    = 10_000        // connections at a time
	bodyTime    = 30 * time.Second
	answerWrite = 15 * time.Second
)

// Rates are how many requests of a key are answered in a second, twice as many at once; 0
// bounds nothing.
type Rates struct{ Read, Write float64 }

// A bucket is of whom and of what.
type bucket struct {
	who   string
	reads bool
}

// limits are the buckets of all callers, and how many streams each has.
type limits struct {
	rates Rates
	now   func() time.Time

	mu      sync.Mutex
	buckets *lru.Cache[bucket, *rate.Limiter]
	streams map[string]int
}

func newLimits(rates Rates, now func() time.Time) *limits {
	return &limits{rates: rates, now: now, buckets: lru.New[bucket, *rate.Limiter](maxCallers), streams: map[string]int{}}
}

// SetRates replaces the Rates of the Config.
func (s *Server) SetRates(r Rates) {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	if s.limits.rates != r {
		s.limits.rates, s.limits.buckets = r, lru.New[bucket, *rate.Limiter](maxCallers)
	}
}

// take counts a request; how long to wait before the next attempt, 0 if it may go on.
func (l *limits) take(of bucket, limit rate.Limit) time.Duration {
	return l.takeOf(of, limit, max(1, int(2*limit)))
}

// takeOf is take of a bucket that holds some.
func (l *limits) takeOf(of bucket, limit rate.Limit, burst int) time.Duration {
	if limit <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets.GetOr(of, func() *rate.Limiter { return rate.NewLimiter(limit, burst) })
	now := l.now()
	r := b.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// request counts a request of a caller.
func (l *limits) request(p *Principal, r *http.Request) time.Duration {
	reads := reads(r)
	l.mu.Lock()
	limit := l.rates.Write
	if reads {
		limit = l.rates.Read
	}
	l.mu.Unlock()
	return l.take(bucket{p.Tenant + "\x00" + p.Subject, reads}, rate.Limit(limit))
}

// stranger counts a request without a valid credential.
func (l *limits) stranger(r *http.Request) time.Duration {
	return l.take(bucket{who: "\x00" + addressOf(r)}, strangers)
}

// login counts an attempt to sign in.
func (l *limits) login(r *http.Request) time.Duration {
	return l.takeOf(bucket{who: "\x00login " + addressOf(r)}, rate.Every(time.Minute/maxLogins), maxLogins)
}

// guesses returns how long an address is to wait that has sent wrong tokens of callbacks: 0 if
// it may send one. Right ones do not count.
func (l *limits) guesses(r *http.Request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets.Get(guessesOf(r))
	if !known {
		return 0
	}
	return time.Duration(max(0, 1-b.TokensAt(l.now())) / float64(strangers) * float64(time.Second))
}

// guessed counts a wrong token of a callback.
func (l *limits) guessed(r *http.Request) { l.take(guessesOf(r), strangers) }

func guessesOf(r *http.Request) bucket { return bucket{who: "\x00callback " + addressOf(r)} }

// addressOf returns from where a request comes, without its port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// stream counts a stream that begins; done is called when it has ended. ok is false if the
// caller has too many.
func (l *limits) stream(p *Principal) (done func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := p.Tenant + "\x00" + p.Subject
	if l.streams[who] >= maxStreams {
		return nil, false
	}
	l.streams[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.streams[who]--; l.streams[who] == 0 {
			delete(l.streams, who)
		}
	}, true
}

// tooMany refuses what comes too often.
func tooMany(w http.ResponseWriter, wait time.Duration) *api.Error {
	seconds := int64(wait+time.Second-1) / int64(time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(max(1, seconds), 10))
	return &api.Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Detail: "too many requests at a time", Hint: fmt.Sprintf("try again in %d s; --rate-read and --rate-write of dialai serve say how many", max(1, seconds)), Retryable: true, ExitCode: 1}
}

// tooManyStreams refuses a stream more than a caller may have.
func tooManyStreams(p *Principal) *api.Error {
	return &api.Error{Status: http.StatusTooManyRequests, Code: "too_many_streams", Detail: fmt.Sprintf("%s has %d streams open", p.Subject, maxStreams), Hint: "end one of them", Retryable: true, ExitCode: 1}
}
