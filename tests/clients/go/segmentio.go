package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

var segmentioCodecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// byTopicsOrder gives a record the partition that it was given in its WriterData.
func byTopicsOrder(message kafka.Message, _ ...int) int { return int(message.WriterData.(int32)) }

// segmentio has no idempotent producer.
func segmentio(servers []string, topic, codec string, records []Record) ([]Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	writer := &kafka.Writer{
		Addr: kafka.TCP(servers...), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond,
		Compression: segmentioCodecs[codec], Balancer: kafka.BalancerFunc(byTopicsOrder),
	}
	expected := map[int32]int{}
	messages := make([]kafka.Message, len(records))
	for i, record := range records {
		expected[record.Partition]++
		made := kafka.Message{
			Key: record.Key, Value: record.Value, Time: time.UnixMilli(record.Timestamp), WriterData: record.Partition,
		}
		for _, header := range record.Headers {
			made.Headers = append(made.Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
		messages[i] = made
	}
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	var got []Record
	for partition, count := range expected {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: servers, Topic: topic, Partition: int(partition), MinBytes: 1, MaxBytes: 1 << 20,
			MaxWait: 100 * time.Millisecond,
		})
		for range count {
			one, err := reader.ReadMessage(ctx)
			if err != nil {
				return nil, err
			}
			record := Record{
				Partition: int32(one.Partition), Offset: one.Offset, Key: one.Key, Value: one.Value,
				Timestamp: one.Time.UnixMilli(),
			}
			for _, header := range one.Headers {
				record.Headers = append(record.Headers, Header{header.Key, header.Value})
			}
			got = append(got, record)
		}
		if err := reader.Close(); err != nil {
			return nil, err
		}
	}
	return got, nil
}
