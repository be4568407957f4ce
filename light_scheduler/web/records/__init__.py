"""What topics have: the history, changes, and dead letters, which can be sent again."""
