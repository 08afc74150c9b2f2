package postgres_test

import (
	"context"
	"fmt"
	"os"
	cmd "os/exec"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

const killedStore = "DIALAI_KILLED_STORE"

// killed is the process that TestKilled starts.
func killed() int {
	s, err := postgres.Open(context.Background(), os.Getenv(killedStore), postgres.Hurried(postgres.Options{}, hurry))
	if err == nil {
		err = storetest.Killed(context.Background(), s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilled kills processes that archive and erase in a database.
func TestKilled(t *testing.T) {
	address := pgtest.Database(t)
	storetest.RunKilled(t, eraseMaker(address), 4, func(*testing.T) *cmd.Cmd {
		p := cmd.Command(os.Args[0])
		p.Env = []string{killedStore + "=" + address + "&pack=off"}
		return p
	})
}
