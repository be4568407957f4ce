// Schedules a message from Node.js: npm install kafkajs@2.2.4 && node native_headers.mjs
import { Kafka, Partitioners } from "kafkajs";

const kafka = new Kafka({ clientId: "example", brokers: [process.env.KAFKA ?? "127.0.0.1:9092"], logLevel: 1 });
// kafkajs 2 has Kafka's partitioner by default; naming it silences a warning.
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
await producer.connect();
const [sent] = await producer.send({
  topic: "light-scheduler-commands",
  messages: [
    {
      key: "order-node", // the entity: all its commands need the same key; also the id, unless schedule-id is given
      value: "pay!",
      headers: {
        "schedule-after": "2s",
        "schedule-target-topic": "reminders",
        trace: "0af7651916cd43dd", // any other header passes through
      },
    },
    { key: "order-1", value: null }, // a null value and no trigger: cancel
  ],
});
console.log("sent to partition", sent.partition, "offset", sent.baseOffset);
await producer.disconnect();
