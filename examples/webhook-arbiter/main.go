// Command webhook-arbiter is an arbiter behind HTTP: it is sent the proposals of
// a round and answers which one wins, or that a human must decide.
//
//	export ARBITER_WEBHOOK_TOKEN=secret DIALAI_WEBHOOK_ALLOW=127.0.0.1:8790
//	go run ./examples/webhook-arbiter &
//	go run ./cmd/dialai machines/webhook-arbiter.json --meta purpose=research
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dialai/dialai/webhook"
)

func main() {
	address := flag.String("addr", "127.0.0.1:8790", "where to listen")
	flag.Parse()
	token := os.Getenv("ARBITER_WEBHOOK_TOKEN")
	if token == "" {
		log.Fatal("ARBITER_WEBHOOK_TOKEN is not set")
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{Handler: handler(token), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}

// A round is what of the question matters here; there is more in it.
type round struct {
	Proposals []struct {
		ProposalID     string `json:"proposalId"`
		SpecialistID   string `json:"specialistId"`
		TransitionName string `json:"transitionName"`
	} `json:"proposals"`
}

// A verdict is the answer.
type verdict struct {
	ConsensusReached  bool   `json:"consensusReached"`
	WinningProposalID string `json:"winningProposalId,omitempty"`
	Reasoning         string `json:"reasoning"`
}

// handler answers POST /arbitrate.
func handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /arbitrate", func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		// Whoever signs with the token is dialai; the same id is the same
		// question, asked again.
		if err := webhook.Verify([]byte(token), req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp"), req.Header.Get("webhook-signature"), body, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var r round
		if err := json.Unmarshal(body, &r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(arbitrate(r)); err != nil {
			log.Print(err)
		}
	})
	return mux
}

// arbitrate asks for unanimity: whoever stands alone sends it to a human.
func arbitrate(r round) verdict {
	if len(r.Proposals) == 0 {
		return verdict{Reasoning: "nobody proposed anything"}
	}
	first := r.Proposals[0]
	for _, p := range r.Proposals[1:] {
		if p.TransitionName != first.TransitionName {
			return verdict{Reasoning: fmt.Sprintf("%s says %s, %s says %s", first.SpecialistID, first.TransitionName, p.SpecialistID, p.TransitionName)}
		}
	}
	return verdict{ConsensusReached: true, WinningProposalID: first.ProposalID, Reasoning: fmt.Sprintf("all %d agree on %s", len(r.Proposals), first.TransitionName)}
}
