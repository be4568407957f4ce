"""A schema registry with a few schemas and the one endpoint that workers use: `GET /schemas/ids/{id}`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from light_scheduler.host.ports import HOST

_PATH = "/schemas/ids/"
_MISSING = json.dumps({"error_code": 40403, "message": "Schema not found"})


@contextmanager
def serve_schemas(schemas: Mapping[int, Any]) -> Iterator[str]:
    """Serve schemas by id, in its own thread. Yield the address."""
    answers = {f"{_PATH}{id}": json.dumps({"schema": json.dumps(schema)}) for id, schema in schemas.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path)
            body = (_MISSING if answer is None else answer).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: the run shows its own progress."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, name="schema registry")
        serving.start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
