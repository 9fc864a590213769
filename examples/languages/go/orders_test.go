package orders

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type scenario struct {
	Arguments        []string
	Topic            map[string]any
	First, Second    string
	Follower         int
	RequestTimeoutMs int `json:"request_timeout_ms"`
	Outcome          struct {
		Error   string
		Waited  float64
		Records []string
	}
}

func TestAProduceTimesOutWhileAFollowerIsPaused(t *testing.T) {
	given := readScenario(t)
	topic := given.Topic["name"].(string)
	broker := StartBroker(t, given.Arguments...)
	answers := make(answers, 100)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker.Servers...),
		kgo.DefaultProduceTopic(topic),
		kgo.ProduceRequestTimeout(time.Duration(given.RequestTimeoutMs)*time.Millisecond),
		kgo.DisableIdempotentWrite(), // else it tries again until the answer is certain
		kgo.RecordRetries(0),
		kgo.WithLogger(answers),
	)
	must(t, err)
	defer client.Close()
	broker.Call(t, "createTopic", nil, given.Topic, nil)
	must(t, client.ProduceSync(t.Context(), kgo.StringRecord(given.First)).FirstErr())

	broker.Call(t, "pauseBroker", Args{"broker": given.Follower}, nil, nil)
	ended := make(chan error, 1)
	client.Produce(t.Context(), kgo.StringRecord(given.Second), func(_ *kgo.Record, err error) { ended <- err })
	var seen struct{ Waiting []struct{ Left float64 } }
	broker.Call(t, "listWaiting", Args{"kind": "Produce", "count": 1}, nil, &seen)
	if left := seen.Waiting[0].Left; left != given.Outcome.Waited {
		t.Errorf("the produce has %v s left, not %v", left, given.Outcome.Waited)
	}

	broker.Call(t, "advanceClock", nil, Args{"seconds": seen.Waiting[0].Left}, nil)
	if err := <-ended; !errors.Is(err, kgo.ErrRecordRetries) {
		t.Errorf("the produce ended with %v", err)
	}
	<-answers // to the first
	if answer := <-answers; !strings.Contains(answer, given.Outcome.Error) {
		t.Errorf("the broker answered %s, not %s", answer, given.Outcome.Error)
	}

	broker.Call(t, "resumeBroker", Args{"broker": given.Follower}, nil, nil)
	var kept struct{ Records []struct{ Value string } }
	broker.Call(t, "readRecords", Args{"topic": topic}, nil, &kept)
	values := make([]string, 0, len(kept.Records))
	for _, record := range kept.Records {
		values = append(values, record.Value)
	}
	if !slices.Equal(values, given.Outcome.Records) {
		t.Errorf("the topic has %v, not %v", values, given.Outcome.Records)
	}
}

// answers has what brokers answered to produces: franz-go reports that it gave up, and says why in its log only.
type answers chan string

func (answers) Level() kgo.LogLevel { return kgo.LogLevelDebug }

func (a answers) Log(_ kgo.LogLevel, message string, values ...any) {
	if message == "produced" {
		a <- fmt.Sprint(values...)
	}
}

func readScenario(t *testing.T) (given scenario) {
	t.Helper()
	text, err := os.ReadFile(cmp.Or(os.Getenv("SCENARIO"), "../scenario.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &given))
	return given
}
