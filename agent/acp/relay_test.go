package acp

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/agent"
)

// TestRelayToken: whoever has not the word of the agent's environment is not heard, the socket is
// its owner's alone, and nothing of it is left.
func TestRelayToken(t *testing.T) {
	v, err := serve(newSession(agent.Spec{ID: "s", Tools: []agent.Tool{{Name: "submit"}}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(v.dir, "s")
	folder, err := os.Stat(v.dir)
	socket, err2 := os.Stat(path)
	if err != nil || err2 != nil || folder.Mode().Perm() != 0o700 || socket.Mode().Perm() != 0o600 {
		t.Errorf("the folder is %v, the socket %v", folder, socket)
	}
	for word, heard := range map[string]bool{"": false, "wrong": false, v.token + "x": false, v.token[1:]: false, v.token: true} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(word + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")) // it may be closed already
		line, err := bufio.NewReader(conn).ReadString('\n')
		if (err == nil) != heard {
			t.Errorf("with the word %q it is answered %q, %v", word, line, err)
		}
		conn.Close()
	}
	v.close()
	if _, err := os.Stat(v.dir); err == nil {
		t.Error("its folder is left")
	}
}
