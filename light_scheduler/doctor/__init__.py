"""The checks of `doctor`: broker, topics, rights, access, clock and disk. Nothing here writes to a topic."""
