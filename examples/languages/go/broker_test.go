package orders

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Broker is `abeyant broker` in a process of its own, and its control over HTTP.
type Broker struct {
	Servers []string
	control string
	paths   map[string]operation // by the operationIds of its OpenAPI description
}

type operation struct {
	method, path string
	query        []string
}

// StartBroker starts a broker that ends with the test, even if the test is killed: its end closes the broker's stdin.
func StartBroker(t *testing.T, arguments ...string) *Broker {
	t.Helper()
	process := exec.Command("abeyant", append([]string{"broker", "--until-stdin-closes"}, arguments...)...)
	process.Stderr = os.Stderr
	_, err := process.StdinPipe()
	must(t, err)
	output, err := process.StdoutPipe()
	must(t, err)
	must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		if err := process.Wait(); err != nil {
			t.Errorf("abeyant broker: %v", err)
		}
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	must(t, err)
	var ports struct {
		Servers string `json:"bootstrap.servers"`
		Control string
	}
	must(t, json.Unmarshal(line, &ports))
	broker := &Broker{strings.Split(ports.Servers, ","), ports.Control, map[string]operation{}}
	broker.describe(t)
	return broker
}

func (b *Broker) describe(t *testing.T) {
	t.Helper()
	var description struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
		}
	}
	b.send(t, "GET", b.control+"openapi.json", nil, &description)
	for path, methods := range description.Paths {
		for method, described := range methods {
			made := operation{method: strings.ToUpper(method), path: path}
			for _, parameter := range described.Parameters {
				if parameter.In == "query" {
					made.query = append(made.query, parameter.Name)
				}
			}
			b.paths[described.OperationID] = made
		}
	}
}

// Args are the values of an operation's path and query, by name.
type Args map[string]any

// Call calls an operation of control by its operationId, and reads its answer into `answer` unless that is nil.
func (b *Broker) Call(t *testing.T, id string, args Args, body, answer any) {
	t.Helper()
	known, found := b.paths[id]
	if !found {
		t.Fatalf("control has no operation %s", id)
	}
	path, query := known.path, url.Values{}
	for name, value := range args {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)))
	}
	for _, name := range known.query {
		if value, given := args[name]; given {
			query.Set(name, fmt.Sprint(value))
		}
	}
	b.send(t, known.method, strings.TrimSuffix(b.control, "/")+path+"?"+query.Encode(), body, answer)
}

func (b *Broker) send(t *testing.T, method, url string, body, answer any) {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		must(t, err)
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, content)
	must(t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode >= 400 {
		t.Fatalf("%s %s: %s", method, url, text)
	}
	if answer != nil {
		must(t, json.Unmarshal(text, answer))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
