"""All code that uses a Kafka client: connections, fetching, batches, transactions, topics and their state."""
