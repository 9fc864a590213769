package main

import (
	"time"

	"github.com/IBM/sarama"
)

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func throughSarama(servers []string, topic, codec string, records []Record) ([]Record, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1 // as it asks for with idempotence
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = saramaCodecs[codec]
	producer, err := sarama.NewSyncProducer(servers, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, record := range records {
		made := &sarama.ProducerMessage{Topic: topic, Partition: record.Partition, Timestamp: time.UnixMilli(record.Timestamp)}
		if record.Key != nil {
			made.Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			made.Value = sarama.ByteEncoder(record.Value)
		}
		for _, header := range record.Headers {
			made.Headers = append(made.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		messages[i] = made
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumer(servers, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	expected := map[int32]int{}
	for _, record := range records {
		expected[record.Partition]++
	}
	var got []Record
	for partition, count := range expected {
		reader, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		for range count {
			one := <-reader.Messages()
			record := Record{
				Partition: one.Partition, Offset: one.Offset, Key: one.Key, Value: one.Value,
				Timestamp: one.Timestamp.UnixMilli(),
			}
			for _, header := range one.Headers {
				record.Headers = append(record.Headers, Header{string(header.Key), header.Value})
			}
			got = append(got, record)
		}
		if err := reader.Close(); err != nil {
			return nil, err
		}
	}
	return got, nil
}
