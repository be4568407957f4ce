"""The proxy between a worker and the broker: it passes everything on until it is told to cut or stall."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from light_scheduler.bench.chaos.proxy import HOST, Proxies
from light_scheduler.host.ports import free_port


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    server = socket.create_server((HOST, 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while chunk := connection.recv(65_536):
                connection.sendall(chunk)

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            thread = threading.Thread(target=answer, args=(connection,))
            thread.start()
            threads.append(thread)

    threads: list[threading.Thread] = []
    serving = threading.Thread(target=serve)
    serving.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    serving.join(10)
    for thread in threads:
        thread.join(10)


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=10)


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (chunk := connection.recv(65_536)):
        found += chunk
    return found


def is_gone(connection: socket.socket) -> bool:
    try:
        return received(connection, 1) == b""
    except ConnectionError:
        return True


def answers(port: int) -> bool:
    """Say whether a new connection gets through."""
    with connect(port) as connection:
        try:
            connection.sendall(b"x")
            return received(connection, 1) == b"x"
        except ConnectionError:
            return False


def stands_still(connection: socket.socket) -> bool:
    connection.settimeout(0.3)
    try:
        connection.sendall(b"b")
        return not received(connection, 1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(10)


def test_it_passes_on_what_comes_from_either_side(echo: int) -> None:
    port, data = free_port(), bytes(range(256)) * 4_000
    with Proxies([(port, echo)]), connect(port) as connection:
        threading.Thread(target=connection.sendall, args=(data,)).start()
        assert received(connection, len(data)) == data


def test_a_cut_ends_connections_and_refuses_others_until_it_is_healed(echo: int) -> None:
    port, other = free_port(), free_port()
    with Proxies([(port, echo), (other, echo)]) as proxies, connect(port) as connection, connect(other) as untouched:
        connection.sendall(b"a")
        assert received(connection, 1) == b"a"
        proxies.order("cut", 0)
        assert is_gone(connection)
        with connect(port) as refused:
            assert is_gone(refused)
        untouched.sendall(b"b")
        assert received(untouched, 1) == b"b"
        proxies.order("heal", 0)
        while not answers(port):  # the order is on its way
            pass


def test_a_stalled_connection_stays_open_and_goes_on_when_it_is_healed(echo: int) -> None:
    port = free_port()
    with Proxies([(port, echo)]) as proxies, connect(port) as connection:
        connection.sendall(b"a")
        assert received(connection, 1) == b"a"
        proxies.order("stall", 0)
        while not stands_still(connection):  # the order is on its way
            pass
        proxies.order("heal", 0)
        assert received(connection, 1) == b"b"
