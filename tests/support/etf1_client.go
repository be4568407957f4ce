// Books schedules with etf1's own client library: one set of records, written to each of several topics.
//
//	etf1-client BOOTSTRAP_SERVERS TARGET DUE TOPIC...
//
// DUE is in seconds since 1970. The header `case` says what a record is there for.
package main

import (
	"log"
	"os"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/etf1/kafka-message-scheduler/clientlib"
	"github.com/etf1/kafka-message-scheduler/clientlib/retry"
)

const day = 86_400

var soon = retry.NewConfig(retry.WithStrategy(&retry.Backoff{Min: time.Second, Max: 2 * time.Second, Factor: 2}))

type client struct {
	target  string
	at      time.Time
	records []*kafka.Message
}

func (c *client) message(name, value string, key []byte, headers ...kafka.Header) *kafka.Message {
	return &kafka.Message{
		Key:            key,
		Value:          []byte(value),
		Timestamp:      c.at,
		TimestampType:  kafka.TimestampCreateTime,
		Headers:        append([]kafka.Header{{Key: "case", Value: []byte(name)}}, headers...),
		TopicPartition: kafka.TopicPartition{Topic: &c.target},
	}
}

func (c *client) add(record *kafka.Message, err error) {
	if err != nil {
		log.Fatal(err)
	}
	c.records = append(c.records, record)
}

func (c *client) schedule(name, value string, due int64) {
	c.add(clientlib.Schedule(c.message(name, value, []byte("key")), name, due, "schedules"))
}

func (c *client) book(due int64) {
	c.schedule("new", "x", due)
	c.schedule("updated", "old", due)
	c.schedule("updated", "new", due+1)
	c.schedule("moved to another day", "x", due)
	c.schedule("moved to another day", "x", due+10*day)
	c.schedule("deleted", "x", due)
	c.add(clientlib.DeleteSchedule("deleted", "schedules"))
	c.add(clientlib.DeleteSchedule("never there", "schedules"))
	c.add(clientlib.Schedule(c.message("no key", "x", nil), "no key", due, "schedules"))
	first := c.message("retry", "x", []byte("key"))
	c.add(clientlib.ScheduleRetry(first, "retry", "schedules", soon))
	again := c.message(
		"second retry", "x", []byte("key"),
		kafka.Header{Key: clientlib.SchedulerKey, Value: []byte("second retry")},
		kafka.Header{Key: clientlib.HeaderEpoch, Value: []byte("1")},
		kafka.Header{Key: clientlib.HeaderRetryAttempt, Value: []byte("1")},
		kafka.Header{Key: clientlib.HeaderRetryOriginalTimestamp, Value: []byte("1")},
	)
	c.add(clientlib.ScheduleRetry(again, "second retry", "schedules", soon))
	c.schedule("the last", "x", due+4)
}

func main() {
	due, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	booking := client{target: os.Args[2], at: time.Now()}
	booking.book(due)
	delivered := make(chan kafka.Event, len(booking.records)*len(os.Args))
	sent := 0
	for _, topic := range os.Args[4:] {
		for _, record := range booking.records {
			copied := *record
			copied.TopicPartition.Topic = &topic
			if err := producer.Produce(&copied, delivered); err != nil {
				log.Fatal(err)
			}
			sent++
		}
	}
	for ; sent > 0; sent-- {
		if message := (<-delivered).(*kafka.Message); message.TopicPartition.Error != nil {
			log.Fatal(message.TopicPartition.Error)
		}
	}
	producer.Close()
}
