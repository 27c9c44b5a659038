// The adapter of a client in Go, in petstore.go.
//
//	(cd examples/exam/go && go build -o adapter .) && npx --no petstore exam --client examples/exam/go/adapter
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type task struct {
	ID        int    `json:"id"`
	Do        string `json:"do"`
	URL       string `json:"url"`
	APIKey    string `json:"apiKey"`
	TimeoutMs int    `json:"timeoutMs"`
	Args      struct {
		PetID    int64  `json:"petId"`
		Quantity int    `json:"quantity"`
		Text     string `json:"text"`
		After    int64  `json:"after"`
		Count    int    `json:"count"`
		Secret   string `json:"secret"`
	} `json:"args"`
}

type failure struct {
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	Text   string `json:"text"`
}

type answer struct {
	ID     int      `json:"id"`
	OK     bool     `json:"ok"`
	Result any      `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	receiver := &Receiver{seen: map[string]bool{}, ids: []int64{}}
	var store *Petstore
	for lines.Scan() {
		var next task
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			panic(err)
		}
		if store == nil {
			timeout := time.Duration(next.TimeoutMs) * time.Millisecond
			store = &Petstore{url: next.URL, apiKey: next.APIKey, http: http.Client{Timeout: timeout}, pets: map[int64]knownPet{}}
		}
		result, err := do(store, receiver, next)
		reply := answer{ID: next.ID, OK: err == nil, Result: result}
		if err != nil {
			reply.Result = nil
			reply.Error = failureOf(err)
		}
		output.Encode(reply)
	}
}

var errUnknown = errors.New("the client has nothing for this")

func do(store *Petstore, receiver *Receiver, task task) (any, error) {
	args := task.Args
	switch task.Do {
	case "getPet":
		return store.GetPet(args.PetID)
	case "refreshPet":
		return store.RefreshPet(args.PetID)
	case "listPets":
		pets, err := store.ListPets()
		ids := []int64{}
		for _, pet := range pets {
			ids = append(ids, pet.ID)
		}
		return ids, err
	case "placeOrder":
		return store.PlaceOrder(args.PetID, args.Quantity)
	case "appendToName":
		pet, err := store.GetPet(args.PetID)
		if err != nil {
			return nil, err
		}
		return store.RenamePet(args.PetID, pet.Name+args.Text)
	case "followEvents":
		ids := []int64{}
		err := store.Follow(args.After, func(event Event) bool {
			ids = append(ids, event.ID)
			return len(ids) < args.Count
		})
		return ids, err
	case "receiveWebhooks":
		receiver.setSecret(args.Secret)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go http.Serve(listener, receiver)
		return map[string]string{"url": "http://" + listener.Addr().String() + "/"}, nil
	case "changeSecret":
		receiver.setSecret(args.Secret)
		return true, nil
	case "receivedEvents":
		return receiver.received(), nil
	}
	return nil, errUnknown
}

func failureOf(err error) *failure {
	if err == errUnknown {
		return &failure{Code: "unknown_task", Text: err.Error()}
	}
	var refused *APIError
	if errors.As(err, &refused) {
		return &failure{Status: refused.Status, Code: refused.Code, Text: err.Error()}
	}
	return &failure{Text: err.Error()}
}

// Receiver takes the events of webhooks, each once.
type Receiver struct {
	lock   sync.Mutex
	secret string
	seen   map[string]bool
	ids    []int64
}

func (r *Receiver) setSecret(secret string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.secret = secret
}

func (r *Receiver) received() []int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return append([]int64{}, r.ids...)
}

func (r *Receiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	r.lock.Lock()
	defer r.lock.Unlock()
	body, err := io.ReadAll(request.Body)
	if err != nil || !isSigned(r.secret, request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event Event
	if id := request.Header.Get("webhook-id"); !r.seen[id] && json.Unmarshal(body, &event) == nil {
		r.seen[id] = true
		r.ids = append(r.ids, event.ID)
	}
	response.WriteHeader(http.StatusNoContent)
}

func isSigned(secret string, header http.Header, body []byte) bool {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "."))
	mac.Write(body)
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
		if err == nil && hmac.Equal(given, mac.Sum(nil)) {
			return true
		}
	}
	return false
}
