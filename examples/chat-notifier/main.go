// Command chat-notifier posts to a chat channel when a human must decide, or is to be reminded,
// with a link to the question. It receives the webhooks of a dialai server, and posts to the
// incoming webhook of the channel: Slack, Mattermost, Rocket.Chat and others take {"text": …}.
//
//	dialai webhooks create https://notifier.example.com/ --type session.needs_human --type question.reminder
//	export DIALAI_WEBHOOK_SECRET=whsec_… CHAT_WEBHOOK_URL=https://hooks.slack.com/services/…
//	go run ./examples/chat-notifier -addr 127.0.0.1:8795
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/webhook"
)

func main() {
	address := flag.String("addr", "127.0.0.1:8795", "where to listen")
	flag.Parse()
	n, err := newNotifier(os.Getenv("DIALAI_WEBHOOK_SECRET"), os.Getenv("CHAT_WEBHOOK_URL"))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{Handler: n, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}

// A notifier posts to one channel.
type notifier struct {
	key  []byte
	chat *webhook.Target

	mu     sync.Mutex
	posted []string // ids of the newest messages that were posted
}

// remembered is how many ids are known again.
const remembered = 1000

func newNotifier(secret, channel string) (*notifier, error) {
	key, err := webhook.Key(secret)
	if err != nil {
		return nil, fmt.Errorf("DIALAI_WEBHOOK_SECRET: %w", err)
	}
	chat, err := webhook.OperatorOutbound(nil, channel).Target(channel)
	if err != nil {
		return nil, fmt.Errorf("CHAT_WEBHOOK_URL: %w", err)
	}
	return &notifier{key: key, chat: chat}, nil
}

// A message is what of dialai's message matters here; there is more in it.
type message struct {
	Type string `json:"type"`
	Data struct {
		MachineName string `json:"machineName"`
		SessionID   string `json:"sessionId"`
		State       string `json:"state"`
		Code        string `json:"code"`
		URL         string `json:"url"`
	} `json:"data"`
}

// ServeHTTP takes a message. Whatever is not answered with 2xx is sent again.
func (n *notifier) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	id := req.Header.Get("webhook-id")
	if err := webhook.Verify(n.key, id, req.Header.Get("webhook-timestamp"), req.Header.Get("webhook-signature"), body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if text := textOf(m); text != "" {
		if err := n.once(req.Context(), id, text); err != nil {
			log.Print(err)
			http.Error(w, "the channel cannot be reached", http.StatusBadGateway)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// textOf returns what is posted; "" if nothing is.
func textOf(m message) string {
	d := m.Data
	where := d.URL
	if where == "" { // the server does not know by which address people reach it
		where = "dialai decide " + d.SessionID
	}
	switch m.Type {
	case "session.needs_human":
		return fmt.Sprintf("%s: a human must decide in state %s (%s)\n%s", d.MachineName, d.State, d.Code, where)
	case "question.reminder":
		return fmt.Sprintf("%s: the question in state %s will be due\n%s", d.MachineName, d.State, where)
	case "webhook.test":
		return "dialai posts here when a human must decide"
	}
	return ""
}

// once posts a text unless that was done: the same message may come twice, under the same id.
func (n *notifier) once(ctx context.Context, id, text string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.posted, id) {
		return nil
	}
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return err
	}
	reply, err := n.chat.Post(ctx, nil, body)
	if err != nil {
		return err
	}
	if reply.Status < 200 || reply.Status > 299 {
		return fmt.Errorf("the channel answered %d", reply.Status)
	}
	n.posted = append(n.posted, id)
	n.posted = n.posted[max(0, len(n.posted)-remembered):]
	return nil
}
