package postgres

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How processes tell each other that something has happened, so that nobody has to look all the time. A
// NOTIFY in a commit would put all commits in one line. So one goroutine tells what has gathered, at most
// every 10 ms, over a connection of its own which does not wait for the disk: ids of sessions in base64,
// "*" for too many of them, and "w" where there is a session to claim. What this process does it tells
// itself at once. Whoever waits hears of what others do over another connection, opened when somebody
// waits for the first time. Nothing depends on any of it: what is not heard is found by looking, after a
// second or two.

const (
	tellEvery  = 10 * time.Millisecond
	tellAtMost = 7900 // bytes; Postgres takes 8000
	watchEvery = 2 * time.Second
	quietFor   = 30 * time.Second // nobody has to tell anything; then it is looked whether that would be heard
	lastWord   = time.Second      // is waited for when the store is closed
)

// wakes are what is to be told, and who waits to be.
type wakes struct {
	s *Store

	mu       sync.Mutex
	sessions map[specialist.SessionID]bool // have changed, and others have not been told
	work     bool                          // there is something to claim
	kick     chan struct{}                 // something has gathered; nil if nobody tells it yet
	told     chan struct{}                 // closed when nobody tells any more
	hearing  chan struct{}                 // closed when nobody listens any more; nil if nobody does yet
	workers  map[chan struct{}]bool        // wait for work
	watchers map[specialist.SessionID]map[chan struct{}]bool
}

// channel returns what the processes of the store listen to.
func (w *wakes) channel() string { return "dialai_" + w.s.address.schema }

// committed tells that a session has changed, and whether there is something to do with it.
func (w *wakes) committed(id specialist.SessionID, ready bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions == nil {
		w.sessions = map[specialist.SessionID]bool{}
	}
	w.sessions[id] = true
	w.wake(id, ready)
	w.tell(ready)
}

// ready tells that there is a session to claim.
func (w *wakes) ready() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(specialist.SessionID{}, true)
	w.tell(true)
}

// wake wakes those of this process who wait. w.mu is held.
func (w *wakes) wake(id specialist.SessionID, ready bool) {
	for c := range w.watchers[id] {
		nudge(c)
	}
	if ready {
		for c := range w.workers {
			nudge(c)
		}
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tell has what has gathered told. w.mu is held.
func (w *wakes) tell(ready bool) {
	w.work = w.work || ready
	if w.kick == nil {
		if w.s.closing.Err() != nil {
			return
		}
		w.kick, w.told = make(chan struct{}, 1), make(chan struct{})
		go w.telling()
	}
	nudge(w.kick)
}

// telling tells others until the store is closed, and then what is left.
func (w *wakes) telling() {
	defer close(w.told)
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			conn.Close(context.Background())
		}
	}()
	for closing := w.s.closing; ; {
		select {
		case <-closing.Done():
		case <-w.kick:
		}
		text := w.gathered()
		if text == "" && closing.Err() != nil {
			return
		}
		if text != "" {
			ctx, cancel := context.WithTimeout(context.Background(), connectWithin)
			stop := context.AfterFunc(closing, func() { time.AfterFunc(lastWord, cancel) })
			conn = w.say(ctx, conn, text)
			stop()
			cancel()
		}
		if closing.Err() == nil {
			time.Sleep(tellEvery)
		}
	}
}

// say sends a text over a connection, which is opened if need be, and returns it. What cannot be sent
// is forgotten.
func (w *wakes) say(ctx context.Context, conn *pgx.Conn, text string) *pgx.Conn {
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = w.s.connect(ctx); err != nil {
			return nil
		}
		_, _ = conn.Exec(ctx, `SET synchronous_commit=off`)
	}
	if _, err := conn.Exec(ctx, `SELECT pg_notify($1, $2)`, w.channel(), text); err != nil {
		conn.Close(ctx)
	}
	return conn
}

// gathered takes what is to be told.
func (w *wakes) gathered() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	if w.work {
		words = append(words, "w")
	}
	if len(w.sessions)*(base64.RawURLEncoding.EncodedLen(16)+1)+2 > tellAtMost {
		words = append(words, "*")
	} else {
		for id := range w.sessions {
			words = append(words, base64.RawURLEncoding.EncodeToString(id[:]))
		}
	}
	w.work = false
	clear(w.sessions)
	return strings.Join(words, " ")
}

// listen has a channel get a value whenever there may be something to claim.
func (w *wakes) listen(news chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.workers == nil {
		w.workers = map[chan struct{}]bool{}
	}
	w.workers[news] = true
	w.hear()
}

// forget ends listen.
func (w *wakes) forget(news chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.workers, news)
}

// hear has others be heard, if they are not yet. w.mu is held.
func (w *wakes) hear() {
	if w.hearing != nil || w.s.closing.Err() != nil {
		return
	}
	w.hearing = make(chan struct{})
	go w.listening()
}

// listening hears what others tell until the store is closed.
func (w *wakes) listening() {
	defer close(w.hearing)
	ctx := w.s.closing
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, watchEvery) {
		conn, err := w.s.connect(ctx)
		if err == nil {
			if err = w.listenBy(ctx, conn); err == nil {
				pause = firstPause
				w.heard("w *") // nobody knows what was told meanwhile
			}
			for err == nil {
				err = w.hears(ctx, conn)
			}
			conn.Close(context.WithoutCancel(ctx))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// listenBy has a connection hear the channel.
func (w *wakes) listenBy(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := w.s.answered(ctx)
	defer cancel()
	_, err := conn.Exec(ctx, `LISTEN `+w.channel())
	return err
}

// hears waits until somebody tells something, and wakes whom that is about. Where nobody does for a while, it looks whether
// the connection would still bring it.
func (w *wakes) hears(ctx context.Context, conn *pgx.Conn) error {
	waits, cancel := context.WithTimeout(ctx, w.s.options.hurried(quietFor))
	defer cancel()
	n, err := conn.WaitForNotification(waits)
	switch {
	case err == nil:
		w.heard(n.Payload)
	case ctx.Err() == nil && waits.Err() != nil && !conn.IsClosed():
		ping, cancel := context.WithTimeout(ctx, w.s.options.hurried(pingWithin))
		defer cancel()
		return conn.Ping(ping)
	}
	return err
}

// heard wakes whom a text is about.
func (w *wakes) heard(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for word := range strings.FieldsSeq(text) {
		switch id, err := base64.RawURLEncoding.DecodeString(word); {
		case word == "w":
			w.wake(specialist.SessionID{}, true)
		case word == "*":
			for id := range w.watchers {
				w.wake(id, false)
			}
		case err == nil && len(id) == len(specialist.SessionID{}):
			w.wake(specialist.SessionID(id), false)
		}
	}
}

// stop waits until all has been told, and nobody listens.
func (w *wakes) stop() {
	w.mu.Lock()
	told, hearing := w.told, w.hearing
	w.mu.Unlock()
	for _, ended := range []chan struct{}{told, hearing} {
		if ended != nil {
			<-ended
		}
	}
}

// Watch implements [session.Watcher].
func (s *Store) Watch(ctx context.Context, id specialist.SessionID, after int64) error {
	w, news := &s.wakes, make(chan struct{}, 1)
	w.mu.Lock()
	if w.watchers == nil {
		w.watchers = map[specialist.SessionID]map[chan struct{}]bool{}
	}
	if w.watchers[id] == nil {
		w.watchers[id] = map[chan struct{}]bool{}
	}
	w.watchers[id][news] = true
	w.hear()
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.watchers[id], news); len(w.watchers[id]) == 0 {
			delete(w.watchers, id)
		}
	}()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		at, err := query(ctx, s, pgx.RowTo[int64], `SELECT sequence FROM sessions WHERE session_id=$1`, [16]byte(id))
		switch {
		case err != nil:
			return err
		case len(at) == 0:
			return &session.NotFoundError{What: "Session", ID: id.String()}
		case at[0] > after:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		case <-look.C:
		}
	}
}
