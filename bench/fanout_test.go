package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

// delay is how long the service thinks.
const delay = 50 * time.Millisecond

// roleVariable makes the test binary be the service, or the bound.
const roleVariable = "DIALAI_BENCH_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "service":
		serve()
	case "raw":
		rawRounds()
	}
	os.Exit(m.Run())
}

// serve answers every request after the delay, with as little work as an HTTP
// service can do. It prints its address first and ends with its stdin.
func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go answer(conn)
	}
}

var response = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 45\r\n\r\n" + `{"transitionName":"on","reasoning":"why not"}`)

func answer(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		length, reply, wait := 0, response, delay
		for first := true; ; first = false {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if rest, ok := bytes.CutPrefix(line, []byte("POST /models/")); first && ok { // after so many milliseconds, as a model
				ms, _, _ := bytes.Cut(rest, []byte("/"))
				n, _ := strconv.Atoi(string(ms))
				reply, wait = modelResponse, time.Duration(n)*time.Millisecond
			}
			if len(line) <= 2 {
				break
			}
			if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("content-length")) {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
			}
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		time.Sleep(wait) // the service's work, not the test's patience
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

// child starts the test binary in another role, in a process of its own.
func child(b testing.TB, role string) (io.Writer, *bufio.Reader) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return in, bufio.NewReader(out)
}

// service starts the service.
func service(b testing.TB) string {
	_, out := child(b, "service")
	address, err := out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// newRawClient starts the bound, prepared requests on open sockets, and returns
// what makes a round of it. It is another process, so that the peak is ours alone.
func newRawClient(b *testing.B, address string, n int) (round func() time.Duration) {
	in, out := child(b, "raw")
	ask := func(question string) time.Duration {
		fmt.Fprintln(in, question)
		line, err := out.ReadString('\n')
		took, err2 := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err := errors.Join(err, err2); err != nil {
			b.Fatal(err)
		}
		return time.Duration(took)
	}
	ask(fmt.Sprint(address, " ", n))
	return func() time.Duration { return ask("round") }
}

// rawRounds is the bound: it opens connections as its first line says, and then
// makes a round for each line, of which it prints the nanoseconds.
func rawRounds() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	address, number, _ := strings.Cut(lines.Text(), " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	body := strings.Repeat("x", 400) // about what a question is
	request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body)
	conns := make([]net.Conn, n)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", address); err != nil {
			panic(err)
		}
	}
	for fmt.Println(0); lines.Scan(); {
		fmt.Println(rawRound(conns, request).Nanoseconds())
	}
	os.Exit(0)
}

func rawRound(conns []net.Conn, request []byte) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() {
			if _, err := conns[i].Write(request); err != nil {
				panic(err)
			}
			if _, err := io.ReadFull(conns[i], make([]byte, len(response))); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// fanMachine asks n webhooks in every round; nobody decides early.
func fanMachine(b *testing.B, address string, n int) *machine.Machine {
	var who strings.Builder
	for i := range n {
		fmt.Fprintf(&who, `{"role":"proposer","specialistId":"p%d","strategyWebhookUrl":"http://%s/","webhookTokenName":"WEBHOOK"},`, i, address)
	}
	states := `"a":{"transitions":{"on":"b"}`
	// A list holds 256 specialists at most, so larger rounds get theirs registered.
	m, err := machine.Parse("fan.json", []byte(`{"machineName":"fan","initialState":"a","goalState":"z","solicit":{"maxParallel":10000},
		"states":{`+states+`},"b":{"transitions":{"on":"a"}},"z":{}},"specialists":[`+who.String()+`{"role":"arbiter","specialistId":"x","strategyFn":"= proposals > 0 ? \"on\" : none"}]}`), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// peakMiB returns the largest resident set this process ever had.
func peakMiB() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return kib / 1024
		}
	}
	return 0
}

// BenchmarkFanOut measures a round that asks many webhooks at once, against the
// bound in the same run (100 with -short).
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{100, 1000} {
		if testing.Short() && n > 100 {
			continue // thousands of connections may be more than a process may have there
		}
		b.Run(fmt.Sprintf("webhooks=%d", n), func(b *testing.B) {
			address := service(b)
			policy, err := webhook.ParsePolicy("127.0.0.1")
			if err != nil {
				b.Fatal(err)
			}
			r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: webhook.New(webhook.Config{
				Policy: policy, Lookup: func(string) (string, bool) { return "token", true }})})
			if err != nil {
				b.Fatal(err)
			}
			declared := min(n, 200)
			m := fanMachine(b, address, declared)
			ctx := context.Background()
			for i := declared; i < n; i++ {
				s := machine.Specialist{Role: machine.Proposer, SpecialistID: fmt.Sprintf("p%d", i), StrategyWebhookURL: "http://" + address + "/", WebhookTokenName: "WEBHOOK"}
				if _, err := r.Register(ctx, "fan", s, nil); err != nil {
					b.Fatal(err)
				}
			}
			s, err := r.Start(ctx, m, runner.StartOptions{})
			if err != nil {
				b.Fatal(err)
			}
			round := func() time.Duration {
				start := time.Now()
				tick, err := r.Step(ctx, s.ID)
				if err == nil && (tick.Status != runner.TickAdvanced || len(tick.Asked()) != n) {
					err = errors.New(string(tick.Status))
				}
				if err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			raw := newRawClient(b, address, n)
			raw()
			round() // dials
			var ours, bound []float64
			for b.Loop() {
				bound = append(bound, raw().Seconds())
				ours = append(ours, round().Seconds())
			}
			us, them := median(ours), median(bound)
			b.ReportMetric(us*1000, "ms/round")
			b.ReportMetric(us/delay.Seconds(), "x-ideal")
			b.ReportMetric(us/them, "x-raw")
			b.ReportMetric(peakMiB(), "peak-MiB")
		})
	}
}
