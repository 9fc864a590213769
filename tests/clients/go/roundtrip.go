// Command clients sends records through a Kafka with one of three Go clients, reads them back, and prints what it read.
//
//	clients franz-go|sarama|kafka-go BOOTSTRAP RECORDS CODEC...
//	clients copy franz-go|sarama BOOTSTRAP SECURITY COUNT
//
// RECORDS is a file: one JSON object per line, as Record has it. They go to a topic for each codec, "CLIENT-CODEC".
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

// Record is one record, as it is given and as it is printed. Bytes are base64, or null.
type Record struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
}

// Header is one header of a record.
type Header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// A client sends the records to the topic, in order, idempotently where it can, waits for all replicas, and returns what
// is in the topic then.
type client func(servers []string, topic, codec string, records []Record) ([]Record, error)

var clients = map[string]client{"franz-go": franz, "sarama": throughSarama, "kafka-go": segmentio}

const patience = 60 * time.Second

func main() {
	if os.Args[1] == "copy" {
		copyOver(os.Args[2:])
		return
	}
	if os.Args[1] == "share" {
		share(os.Args[2:])
		return
	}
	name, servers, file := os.Args[1], strings.Split(os.Args[2], ","), os.Args[3]
	records, err := given(file)
	check(err)
	out := json.NewEncoder(os.Stdout)
	for _, codec := range os.Args[4:] {
		topic := name + "-" + codec
		got, err := clients[name](servers, topic, codec, records)
		check(err)
		sort.SliceStable(got, func(i, j int) bool { return got[i].Partition < got[j].Partition })
		for _, record := range got {
			record.Topic = topic
			check(out.Encode(record))
		}
	}
}

func given(file string) ([]Record, error) {
	data, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	var records []Record
	lines := bufio.NewScanner(data)
	for lines.Scan() {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, lines.Err()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
