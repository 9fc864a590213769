package main

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"sync"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

var saramaHashes = map[sarama.SASLMechanism]scram.HashGeneratorFcn{
	sarama.SASLTypeSCRAMSHA256: sha256.New, sarama.SASLTypeSCRAMSHA512: sha512.New,
}

// saramaScram is what sarama leaves to its users: one conversation of SCRAM.
type saramaScram struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (s *saramaScram) Begin(user, password, authorization string) error {
	client, err := s.hash.NewClient(user, password, authorization)
	if err == nil {
		s.ClientConversation = client.NewConversation()
	}
	return err
}

func saramaConfig(security *Security) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.AutoCommit.Enable = false
	if security == nil {
		return config, nil
	}
	trust, err := security.TLS()
	if err != nil {
		return nil, err
	}
	config.Net.TLS.Enable, config.Net.TLS.Config = true, trust
	config.Net.SASL.Enable = true
	config.Net.SASL.User, config.Net.SASL.Password = security.User, security.Password
	config.Net.SASL.Mechanism = sarama.SASLMechanism(security.Mechanism)
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &saramaScram{hash: saramaHashes[config.Net.SASL.Mechanism]}
	}
	return config, nil
}

// saramaReader takes the records of a group's claims, until it has enough of them.
type saramaReader struct {
	lock   sync.Mutex
	wanted int
	got    []One
	done   context.CancelFunc
}

func (*saramaReader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *saramaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case one, open := <-claim.Messages():
			if !open {
				return nil
			}
			r.lock.Lock()
			r.got = append(r.got, One{one.Partition, one.Offset, one.Value})
			if len(r.got) == r.wanted {
				r.done()
			}
			r.lock.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func saramaRead(servers []string, config *sarama.Config, group, topic string, count int) ([]One, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	member, err := sarama.NewConsumerGroup(servers, group, config)
	if err != nil {
		return nil, err
	}
	defer member.Close()
	reader := &saramaReader{wanted: count, done: cancel}
	for ctx.Err() == nil {
		if err := member.Consume(ctx, []string{topic}, reader); err != nil {
			return nil, err
		}
	}
	return reader.got, nil
}

func saramaCopy(servers []string, security *Security, count int) ([]One, error) {
	config, err := saramaConfig(security)
	if err != nil {
		return nil, err
	}
	records, err := saramaRead(servers, config, "copiers", "in", count)
	if err != nil {
		return nil, err
	}
	transactional := *config
	transactional.Producer.Transaction.ID = "copier"
	transactional.Producer.Idempotent = true
	transactional.Producer.RequiredAcks = sarama.WaitForAll
	transactional.Producer.Return.Successes = true
	transactional.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(servers, &transactional)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	aborted := &sarama.ProducerMessage{Topic: "out", Value: sarama.StringEncoder("aborted")}
	if _, _, err := producer.SendMessage(aborted); err != nil {
		return nil, err
	}
	if err := producer.AbortTxn(); err != nil {
		return nil, err
	}
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	next := map[int32]int64{}
	for _, one := range records {
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "out", Value: sarama.ByteEncoder(one.Value)}); err != nil {
			return nil, err
		}
		next[one.Partition] = max(next[one.Partition], one.Offset+1)
	}
	var offsets []*sarama.PartitionOffsetMetadata
	for partition, offset := range next {
		offsets = append(offsets, &sarama.PartitionOffsetMetadata{Partition: partition, Offset: offset})
	}
	if err := producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{"in": offsets}, "copiers"); err != nil {
		return nil, err
	}
	if err := producer.CommitTxn(); err != nil {
		return nil, err
	}
	return saramaRead(servers, config, "readers", "out", count)
}
