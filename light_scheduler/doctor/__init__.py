"""What `doctor` looks at: broker, topics, rights, access, clock and disk. Nothing here writes to a topic."""
