"""The HTTP API as it is declared: its operations, documents and OpenAPI."""
