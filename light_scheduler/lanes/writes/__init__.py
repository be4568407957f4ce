"""What a cycle writes in its transaction: state, history, answers, dead letters, and records for other partitions."""
