"""The HTTP server of a worker: connections, headers of every answer, and the hosts that it answers as."""
