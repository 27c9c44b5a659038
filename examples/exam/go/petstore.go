package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const attempts = 4

// Petstore is a client with the standard library alone.
type Petstore struct {
	url, apiKey string
	http        http.Client
	pets        map[int64]knownPet
}

type knownPet struct {
	etag string
	pet  Pet
}

type Pet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

type Order struct {
	ID       int64 `json:"id"`
	PetID    int64 `json:"petId"`
	Quantity int   `json:"quantity"`
	Complete bool  `json:"complete"`
}

type Event struct {
	ID int64 `json:"id"`
}

// APIError is a response that is no success.
type APIError struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *APIError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

func (s *Petstore) request(method, path string, body any, fields map[string]string) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		content = nil
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.apiKey)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	return s.http.Do(request)
}

// call sends a request and decodes the response into a value. It repeats reads.
func (s *Petstore) call(method, path string, body, result any, fields map[string]string) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := s.once(method, path, body, result, fields)
		var refused *APIError
		isFinal := errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429
		if err == nil || isFinal || method != "GET" || attempt == attempts {
			return response, err
		}
		time.Sleep(pauseAfter(response, attempt))
	}
}

func (s *Petstore) once(method, path string, body, result any, fields map[string]string) (*http.Response, error) {
	response, err := s.request(method, path, body, fields)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		refused := &APIError{Status: response.StatusCode}
		json.NewDecoder(response.Body).Decode(refused)
		return response, refused
	}
	if response.StatusCode == 304 {
		return response, nil
	}
	return response, json.NewDecoder(response.Body).Decode(result)
}

func pauseAfter(response *http.Response, attempt int) time.Duration {
	if response != nil {
		field := response.Header.Get("Retry-After")
		if seconds, err := strconv.Atoi(field); err == nil {
			return time.Duration(seconds) * time.Second
		}
		if date, err := http.ParseTime(field); err == nil {
			return time.Until(date)
		}
	}
	return time.Duration(attempt) * 500 * time.Millisecond
}

func (s *Petstore) GetPet(id int64) (pet Pet, err error) {
	_, err = s.call("GET", fmt.Sprintf("/pets/%d", id), nil, &pet, nil)
	return pet, err
}

// RefreshPet reads a pet only if it has changed since the last time.
func (s *Petstore) RefreshPet(id int64) (Pet, error) {
	known := s.pets[id]
	fields := map[string]string{}
	if known.etag != "" {
		fields["If-None-Match"] = known.etag
	}
	var pet Pet
	response, err := s.call("GET", fmt.Sprintf("/pets/%d", id), nil, &pet, fields)
	if err != nil {
		return Pet{}, err
	}
	if response.StatusCode == 304 {
		return known.pet, nil
	}
	s.pets[id] = knownPet{response.Header.Get("ETag"), pet}
	return pet, nil
}

var nextPage = regexp.MustCompile(`<([^>]+)>; rel="next"`)

func (s *Petstore) ListPets() ([]Pet, error) {
	all := []Pet{}
	for path := "/pets?limit=100"; path != ""; {
		var page []Pet
		response, err := s.call("GET", path, nil, &page, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		path = ""
		if link := nextPage.FindStringSubmatch(response.Header.Get("Link")); link != nil {
			path = link[1]
		}
	}
	return all, nil
}

func (s *Petstore) PlaceOrder(petID int64, quantity int) (order Order, err error) {
	_, err = s.call("POST", "/store/orders", map[string]any{"petId": petID, "quantity": quantity}, &order, nil)
	return order, err
}

func (s *Petstore) RenamePet(id int64, name string) (pet Pet, err error) {
	_, err = s.call("PATCH", fmt.Sprintf("/pets/%d", id), map[string]string{"name": name}, &pet, nil)
	return pet, err
}

// Follow calls a function with each event after a number until it returns false.
func (s *Petstore) Follow(after int64, handle func(Event) bool) error {
	for {
		fields := map[string]string{"Accept": "text/event-stream", "Last-Event-ID": strconv.FormatInt(after, 10)}
		response, err := s.request("GET", "/events", nil, fields)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		if response.StatusCode != 200 {
			response.Body.Close()
			return &APIError{Status: response.StatusCode}
		}
		last, isDone := readEvents(response.Body, after, handle)
		response.Body.Close()
		if isDone {
			return nil
		}
		after = last
	}
}

func readEvents(body io.Reader, last int64, handle func(Event) bool) (int64, bool) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var event Event
		if json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		last = event.ID
		if !handle(event) {
			return last, true
		}
	}
	return last, false
}
