"""The commands of a lane, from the log to a cycle."""
