package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func franzOptions(servers []string, security *Security) ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(servers...)}
	if security == nil {
		return options, nil
	}
	trust, err := security.TLS()
	if err != nil {
		return nil, err
	}
	hashed := scram.Auth{User: security.User, Pass: security.Password}
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: security.User, Pass: security.Password}.AsMechanism(),
		"SCRAM-SHA-256": hashed.AsSha256Mechanism(),
		"SCRAM-SHA-512": hashed.AsSha512Mechanism(),
	}
	return append(options, kgo.DialTLSConfig(trust), kgo.SASL(mechanisms[security.Mechanism])), nil
}

func franzGroup(group, topic string) []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
}

// franzPoll polls until it has so many records; poll is a client's, or a transaction session's.
func franzPoll(ctx context.Context, poll func(context.Context) kgo.Fetches, count int) ([]One, error) {
	var got []One
	for len(got) < count {
		fetches := poll(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(one *kgo.Record) { got = append(got, One{one.Partition, one.Offset, one.Value}) })
	}
	return got, nil
}

func franzCopy(servers []string, security *Security, count int) ([]One, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	common, err := franzOptions(servers, security)
	if err != nil {
		return nil, err
	}
	options := append(append([]kgo.Opt{kgo.TransactionalID("copier")}, common...), franzGroup("copiers", "in")...)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	records, err := franzPoll(ctx, session.PollFetches, count)
	if err != nil {
		return nil, err
	}
	producer := session.Client()
	if err := producer.BeginTransaction(); err != nil {
		return nil, err
	}
	if err := session.ProduceSync(ctx, &kgo.Record{Topic: "out", Value: []byte("aborted")}).FirstErr(); err != nil {
		return nil, err
	}
	if err := producer.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return nil, err
	}
	if err := session.Begin(); err != nil {
		return nil, err
	}
	for _, one := range records {
		made := &kgo.Record{Topic: "out", Value: one.Value}
		session.Produce(ctx, made, func(_ *kgo.Record, failed error) {
			if failed != nil {
				err = failed
			}
		})
	}
	if committed, ended := session.End(ctx, kgo.TryCommit); ended != nil || !committed || err != nil {
		check(ended)
		return nil, err
	}
	reader, err := kgo.NewClient(append(common, franzGroup("readers", "out")...)...)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return franzPoll(ctx, reader.PollFetches, count)
}
