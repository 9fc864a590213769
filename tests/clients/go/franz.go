package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func franz(servers []string, topic, codec string, records []Record) ([]Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(servers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(franzCodecs[codec]), // idempotent and acks=all unless told otherwise
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, record := range records {
		made := &kgo.Record{
			Topic: topic, Partition: record.Partition, Key: record.Key, Value: record.Value,
			Timestamp: time.UnixMilli(record.Timestamp),
		}
		for _, header := range record.Headers {
			made.Headers = append(made.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		client.Produce(ctx, made, func(_ *kgo.Record, failed error) {
			if failed != nil {
				err = failed
			}
		})
	}
	if flushed := client.Flush(ctx); flushed != nil {
		return nil, flushed
	}
	if err != nil {
		return nil, err
	}
	var got []Record
	for len(got) < len(records) {
		fetches := client.PollFetches(ctx)
		if failed := fetches.Err0(); failed != nil {
			return nil, failed
		}
		for _, failed := range fetches.Errors() {
			return nil, failed.Err
		}
		fetches.EachRecord(func(one *kgo.Record) {
			record := Record{
				Partition: one.Partition, Offset: one.Offset, Key: one.Key, Value: one.Value,
				Timestamp: one.Timestamp.UnixMilli(),
			}
			for _, header := range one.Headers {
				record.Headers = append(record.Headers, Header{header.Key, header.Value})
			}
			got = append(got, record)
		})
	}
	return got, nil
}
