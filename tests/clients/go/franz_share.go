package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var acknowledgements = map[string]kgo.AckStatus{
	"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject, "renew": kgo.AckRenew,
}

// share is the command "share BOOTSTRAP GROUP TOPIC COUNT": a member of a share group that does with each record what the first
// word of its value says, and accepts it when it comes again. It prints the offset, the delivery count and the value of each, until
// there were COUNT.
func share(arguments []string) {
	count, err := strconv.Atoi(arguments[3])
	check(err)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...), kgo.ConsumeTopics(arguments[2]), kgo.ShareGroup(arguments[1]),
	)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for count > 0 {
		fetches := client.PollFetches(ctx)
		check(fetches.Err0())
		for _, record := range fetches.Records() {
			status := acknowledgements[strings.Fields(string(record.Value))[0]]
			if record.DeliveryCount() > 1 {
				status = kgo.AckAccept
			}
			client.MarkAcks(status, record)
			if status == kgo.AckRenew {
				check(client.FlushAcks(ctx))
				client.MarkAcks(kgo.AckAccept, record)
			}
			fmt.Println(record.Offset, record.DeliveryCount(), string(record.Value))
			count--
		}
	}
	check(client.FlushAcks(ctx))
	client.Close()
}
