// Schedules a message from Go: cd examples/clients && go run native_headers.go
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	kafka := os.Getenv("KAFKA")
	if kafka == "" {
		kafka = "127.0.0.1:9092"
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka)) // its default partitioner is Kafka's
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	later := &kgo.Record{
		Topic: "light-scheduler-commands",
		Key:   []byte("order-go"), // the entity: all its commands need the same key; also the id, unless schedule-id is given
		Value: []byte("pay!"),
		Headers: []kgo.RecordHeader{
			{Key: "schedule-after", Value: []byte("2s")},
			{Key: "schedule-target-topic", Value: []byte("reminders")},
			{Key: "trace", Value: []byte("0af7651916cd43dd")}, // any other header passes through
		},
	}
	cancel := &kgo.Record{Topic: "light-scheduler-commands", Key: []byte("order-1")} // null value: cancel
	if err := client.ProduceSync(context.Background(), later, cancel).FirstErr(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent to partition", later.Partition, "offset", later.Offset)
}
