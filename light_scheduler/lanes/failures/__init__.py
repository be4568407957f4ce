"""What a lane does when a transaction fails, or a target is unavailable: nothing else waits for it."""
