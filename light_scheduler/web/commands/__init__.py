"""Commands over HTTP: from a request to a record, and from its result to a response."""
