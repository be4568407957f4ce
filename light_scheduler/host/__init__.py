"""The machine: ports, signals, a Java runtime, and jars that are downloaded once and pinned."""
