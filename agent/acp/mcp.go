package acp

import (
	"bufio"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/hosttools"
	"github.com/dialai/dialai/agent/internal/process"
)

// The tools of the host, as a server of MCP. The agent starts that server's program itself, which
// only carries bytes between its standard streams and a socket of this process; so the tools are
// answered where everything else is. The socket is in a folder that nobody else may enter, and
// whoever connects has to say a word that only the agent's environment has.

// Names of the relay's environment.
const (
	socketEnv = "DIALAI_RELAY_SOCKET"
	tokenEnv  = "DIALAI_RELAY_TOKEN"
)

// Relay carries bytes between the standard streams of a program that an agent has started and the
// session that this agent belongs to, until one of both ends. getenv is [os.Getenv].
func Relay(in io.Reader, out io.Writer, getenv func(string) string) error {
	path, token := getenv(socketEnv), getenv(tokenEnv)
	if path == "" || token == "" {
		return errors.New("relay: no agent of a session has started this: " + socketEnv + " and " + tokenEnv + " are not set")
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("relay: the session has ended: %w", err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, token+"\n"); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	done := make(chan error, 2)
	go func() { _, err := io.Copy(conn, in); done <- err }()
	go func() { _, err := io.Copy(out, conn); done <- err }()
	if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// A server serves the host's tools to the relays of one session.
type server struct {
	s      *session
	dir    string
	token  string
	listen *net.UnixListener
	once   sync.Once

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// serve starts one.
func serve(s *session) (*server, error) {
	dir, err := os.MkdirTemp("", "dialai-") // mode 0700
	if err != nil {
		return nil, err
	}
	var word [16]byte
	_, _ = rand.Read(word[:]) // it never fails
	v := &server{s: s, dir: dir, token: hex.EncodeToString(word[:]), conns: map[net.Conn]bool{}}
	if v.listen, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.Chmod(filepath.Join(dir, "s"), 0o600); err != nil {
		v.close()
		return nil, err
	}
	go v.accept()
	return v, nil
}

// env is what the relay's environment has to have, as the protocol writes it.
func (v *server) env() []any {
	return []any{map[string]string{"name": socketEnv, "value": filepath.Join(v.dir, "s")}, map[string]string{"name": tokenEnv, "value": v.token},
		map[string]string{"name": "DIALAI_SESSION", "value": v.s.spec.ID}, // so that it is found, as all that the agent has started
	}
}

// close ends it; of nil there is nothing to end.
func (v *server) close() {
	if v == nil {
		return
	}
	v.once.Do(func() {
		_ = v.listen.Close()
		v.mu.Lock()
		for c := range v.conns {
			_ = c.Close()
		}
		v.mu.Unlock()
		_ = os.RemoveAll(v.dir)
	})
}

func (v *server) accept() {
	for {
		conn, err := v.listen.Accept()
		if err != nil {
			return
		}
		v.mu.Lock()
		v.conns[conn] = true
		v.mu.Unlock()
		go v.carry(conn)
	}
}

// carry answers one relay.
func (v *server) carry(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		v.mu.Lock()
		delete(v.conns, conn)
		v.mu.Unlock()
	}()
	r := bufio.NewReader(conn)
	word, err := r.ReadSlice('\n') // in the buffer, so no longer than it
	if err != nil || subtle.ConstantTimeCompare(word[:len(word)-1], []byte(v.token)) != 1 {
		return
	}
	out := &answers{to: conn}
	_ = process.Lines(r, func(line []byte) { v.line(out, line) }) // whatever ends it, it has ended
}

// answers are written one after the other.
type answers struct {
	mu sync.Mutex
	to io.Writer
}

func (a *answers) write(answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.to.Write(append(text, '\n')) // who has gone does not read it
}

func (v *server) line(out *answers, text []byte) {
	var m hosttools.Message
	if json.Unmarshal(text, &m) != nil || m.ID == nil || m.Method == "" {
		return // a notification, or nothing that we know
	}
	if m.Method != hosttools.Call {
		out.write(m.Answer(v.s.spec.Tools))
		return
	}
	v.call(out, m)
}

// call has the host answer a use of one of its tools.
func (v *server) call(out *answers, m hosttools.Message) {
	tool, input := m.Params.Name, m.Params.Arguments
	if !slices.ContainsFunc(v.s.spec.Tools, func(t agent.Tool) bool { return t.Name == tool }) {
		out.write(m.Refuse(-32602, "there is no tool "+tool))
		return
	}
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	v.s.mu.Lock()
	if v.s.turn == nil {
		v.s.mu.Unlock()
		out.write(m.Said(agent.Reply{Content: "no turn runs: nothing can be used now", IsError: true}))
		return
	}
	ask := v.s.put("tool", question{
		cancel: func() { go out.write(m.Said(agent.Reply{Content: "the turn is over", IsError: true})) }, // the relay may be slow
		reply:  func(a agent.Reply) { out.write(m.Said(a)) },
	})
	v.s.mu.Unlock()
	v.s.queue.Tell(agent.ToolCall{ID: ask, Tool: tool, Input: input})
}
