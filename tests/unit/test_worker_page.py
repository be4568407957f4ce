"""A page of a worker, asked for once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from light_scheduler.host.ports import free_port
from light_scheduler.settings import Settings
from light_scheduler.worker_page import page_of_worker


class Pages(BaseHTTPRequestHandler):
    """/here is there, and /cut ends in the middle."""

    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", "100" if self.path == "/cut" else "4")
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def worker_at(port: int) -> Settings:
    return Settings(web_host="127.0.0.1", web_port=port)


@pytest.mark.parametrize(("path", "page"), [("/here", b"here"), ("/missing", None), ("/cut", None)])
def test_a_page_is_what_was_answered_in_whole_and_with_200(port: int, path: str, page: bytes | None) -> None:
    assert page_of_worker(worker_at(port), path, timeout=30) == page


def test_where_nobody_listens_there_is_no_page() -> None:
    assert page_of_worker(worker_at(free_port()), "/", timeout=30) is None


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert page_of_worker(worker_at(silent.getsockname()[1]), "/", timeout=0.05) is None


def test_an_answer_that_is_no_http_is_no_page() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"220 mail\r\n\r\n")

        thread = Thread(target=talk)
        thread.start()
        assert page_of_worker(worker_at(server.getsockname()[1]), "/", timeout=30) is None
        thread.join()
