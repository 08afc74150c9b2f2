package dialai_test

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/dialai/dialai/internal/pgtest"
)

// A composed is what compose.yaml says of one service.
type composed struct {
	Command     []string
	Environment map[string]string
	Ports       []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

// TestCompose does what compose.yaml says, without containers: it migrates a database and starts two servers, and
// what one was told the other knows.
func TestCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]composed }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := address.User.Password()
	address.User = url.User(address.User.Username())
	given := map[string]string{"POSTGRES_PASSWORD": password, "DIALAI_API_TOKEN": strings.Repeat("0123456789abcdef", 4), "DIALAI_SERVER_KEY": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
	environment := func(name string) (list []string) {
		for key, value := range file.Services[name].Environment {
			switch name, _, ok := strings.Cut(strings.TrimPrefix(value, "${"), ":?"); {
			case key == "DATABASE_URL" && value == "postgres://dialai@database/decisions":
				value = address.String()
			case ok:
				value = given[name]
			}
			list = append(list, key+"="+value)
		}
		return list
	}
	if len(environment("one")) != 4 || len(environment("two")) != 4 {
		t.Fatal("the servers have other environments than this test knows")
	}
	for name, needs := range map[string]string{"migrate": "database", "one": "migrate", "two": "migrate"} {
		if _, ok := file.Services[name].DependsOn[needs]; !ok {
			t.Errorf("%s does not wait for %s", name, needs)
		}
	}
	if one, two := file.Services["one"].Ports, file.Services["two"].Ports; slices.Equal(one, two) || len(one) != 1 || !strings.HasPrefix(one[0], "127.0.0.1:") || len(two) != 1 || !strings.HasPrefix(two[0], "127.0.0.1:") {
		t.Errorf("the servers are at %v and %v", one, two)
	}
	run := running(t, program)
	if out := run(environment("migrate"), file.Services["migrate"].Command...); !strings.HasPrefix(out, "Applied ") {
		t.Errorf("migrate says %s", out)
	}
	var at []string
	for _, name := range []string{"one", "two"} {
		args := slices.Clone(file.Services[name].Command)
		i := slices.Index(args, "0.0.0.0:8420")
		if i < 0 {
			t.Fatalf("%s listens at %v", name, args)
		}
		args[i] = "127.0.0.1:0"
		at = append(at, serveAsImage(t, program, append(args, "--json"), environment(name)...))
	}
	knowOfEachOther(t, run, []string{"DIALAI_API_TOKEN=" + given["DIALAI_API_TOKEN"]}, at)
}

// knowOfEachOther has a session run through one of two servers, and looks for it at the other one.
func knowOfEachOther(t *testing.T, run func(env []string, args ...string) string, client, at []string) {
	t.Helper()
	machine := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(machine, []byte(`{"machineName":"composed","initialState":"a","goalState":"b","states":{"a":{"transitions":{"go":"b"}},"b":{}},"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(client, machine, "--server", at[0], "--quiet")
	if out := run(client, "sessions", "--server", at[1], "--json"); !strings.Contains(out, `"status":"completed"`) {
		t.Errorf("the other server knows %s", out)
	}
}

// running returns what runs the program with more in its environment, and returns what it says.
func running(t *testing.T, program string) func(env []string, args ...string) string {
	return func(env []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(append(os.Environ(), "XDG_DATA_HOME="+t.TempDir()), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("dialai %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
}

// TestComposeScript runs compose.sh, which does the same from Debian's packages: twice, so that the second time goes on with what the first
// has left, after a signal that ends all of it.
func TestComposeScript(t *testing.T) {
	t.Parallel()
	pgtest.Database(t) // says what is missing where there is no Postgres
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.MkdirTemp("", "dialai-compose-") // which the user postgres may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	for run := range 2 {
		cmd := exec.CommandContext(t.Context(), "./compose.sh")
		cmd.Env = append(os.Environ(), "DATA="+data, "DIALAI="+program, "ONE=0", "TWO=0")
		cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, time.Minute
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var failed strings.Builder
		cmd.Stderr = &failed
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var at []string
		lines := bufio.NewScanner(out)
		for len(at) < 2 && lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "dialai serves "); ok {
				at = append(at, strings.Fields(rest)[0])
			}
		}
		if len(at) < 2 {
			t.Fatalf("only %v serve: %v\n%s", at, cmd.Wait(), &failed)
		}
		keys, err := os.ReadFile(filepath.Join(data, "keys"))
		if err != nil {
			t.Fatal(err)
		}
		token, _, _ := strings.Cut(string(keys), "\n")
		knowOfEachOther(t, running(t, program), []string{token}, at)
		if out := running(t, program)([]string{token}, "sessions", "--server", at[0], "--quiet"); strings.Count(out, "\n") != run+1 {
			t.Errorf("in run %d there are the sessions\n%s", run+1, out)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // until everybody who writes there has ended
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ends with %v\n%s", err, &failed)
		}
		if left, _ := filepath.Glob(filepath.Join(data, "database", "postmaster.pid")); len(left) > 0 {
			t.Error("the database still runs")
		}
	}
}
