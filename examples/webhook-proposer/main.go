// Command webhook-proposer is two proposers behind HTTP, for the sample machine
// code-review: /tests looks at the test result, /review at the size of the change.
//
//	export REVIEW_WEBHOOK_TOKEN=secret DIALAI_WEBHOOK_ALLOW=127.0.0.1:8787
//	go run ./examples/webhook-proposer &
//	go run ./cmd/dialai machines/code-review.json --meta tests=passed --meta lines=40
package main

import (
	"crypto/subtle"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	address := flag.String("addr", "127.0.0.1:8787", "where to listen")
	flag.Parse()
	token := os.Getenv("REVIEW_WEBHOOK_TOKEN")
	if token == "" {
		log.Fatal("REVIEW_WEBHOOK_TOKEN is not set")
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{Handler: handler(token), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}

// A question is what of dialai's question matters here; there is more in it.
type question struct {
	MetaJSON struct {
		Tests string `json:"tests"`
		Lines int    `json:"lines"`
	} `json:"metaJson"`
}

// An answer names one of the transitions.
type answer struct {
	TransitionName string  `json:"transitionName"`
	Reasoning      string  `json:"reasoning"`
	CostUSD        float64 `json:"costUSD,omitempty"`
}

func handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /tests", propose(token, tests))
	mux.Handle("POST /review", propose(token, review))
	return mux
}

// propose answers questions of whoever knows the token. The user name is the name
// of the machine.
func propose(token string, choose func(question) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if _, password, ok := req.BasicAuth(); !ok || subtle.ConstantTimeCompare([]byte(password), []byte(token)) != 1 {
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		var q question
		if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(choose(q)); err != nil {
			log.Print(err)
		}
	}
}

func tests(q question) answer {
	if q.MetaJSON.Tests == "passed" {
		return answer{TransitionName: "merge", Reasoning: "all tests pass"}
	}
	return answer{TransitionName: "request_changes", Reasoning: "the tests do not pass"}
}

// small is up to how many lines a change can be read at a glance.
const small = 200

func review(q question) answer {
	if q.MetaJSON.Lines <= small {
		return answer{TransitionName: "merge", Reasoning: fmt.Sprintf("%d lines, easy to read", q.MetaJSON.Lines), CostUSD: 0.012}
	}
	return answer{TransitionName: "request_changes", Reasoning: fmt.Sprintf("%d lines are too many for one change", q.MetaJSON.Lines), CostUSD: 0.012}
}
