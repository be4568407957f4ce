"""Kafka: all that touches a Kafka client. Connections, fetching, batches, transactions, topics and their state."""
