package webhook_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"

	"github.com/dialai/dialai/webhook"
)

// A service checks that a question is from whom it shares the secret with before
// it answers.
func ExampleVerify() {
	key, err := webhook.Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		log.Fatal(err)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "the question is too large", http.StatusRequestEntityTooLarge)
			return
		}
		h := r.Header
		if err := webhook.Verify(key, h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), body, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"transitionName":"approve","reasoning":"it is signed"}`)
	}))
	defer service.Close()

	ask := func(signed, sent string) {
		req, err := http.NewRequest(http.MethodPost, service.URL, bytes.NewBufferString(sent))
		if err != nil {
			log.Fatal(err)
		}
		now := time.Now()
		req.Header.Set("webhook-id", "ask-1")
		req.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
		req.Header.Set("webhook-signature", webhook.Sign(key, "ask-1", now, []byte(signed)))
		resp, err := service.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, string(bytes.TrimSpace(answer)))
	}
	ask(`{"amount":10}`, `{"amount":10}`)
	ask(`{"amount":10}`, `{"amount":99}`)
	// Output:
	// 200 {"transitionName":"approve","reasoning":"it is signed"}
	// 401 webhook-signature does not fit
}

// Without entries only public addresses are called, over https.
func ExamplePolicy() {
	policy, err := webhook.ParsePolicy("rules.internal:8080, 10.20.0.0/16")
	if err != nil {
		log.Fatal(err)
	}
	for _, address := range []string{
		"https://api.example.com/hook",
		"http://api.example.com/hook",
		"http://rules.internal:8080/hook",
		"https://10.20.1.2/hook",
		"https://169.254.169.254/latest/meta-data",
	} {
		u, err := url.Parse(address)
		if err != nil {
			log.Fatal(err)
		}
		if err := policy.CheckURL(u); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(address, "is fine")
		}
	}
	// Output:
	// https://api.example.com/hook is fine
	// webhook address api.example.com is not allowed (http; only https, and http to allowed hosts); see DIALAI_WEBHOOK_ALLOW
	// http://rules.internal:8080/hook is fine
	// https://10.20.1.2/hook is fine
	// webhook address 169.254.169.254 is not allowed (link-local); see DIALAI_WEBHOOK_ALLOW
}
