"""Whether a server reacts to connections."""

from __future__ import annotations

import socket
from threading import Thread

from light_scheduler.host.alive import takes_connections
from light_scheduler.host.ports import free_port


def test_a_server_that_ends_a_connection_is_alive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1) == b"", "nothing is asked"

        thread = Thread(target=serve)
        thread.start()
        assert takes_connections("127.0.0.1", server.getsockname()[1], timeout=30)
        thread.join()


def test_one_that_does_not_react_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        assert not takes_connections("127.0.0.1", frozen.getsockname()[1], timeout=0.05)
    assert not takes_connections("127.0.0.1", free_port(), timeout=30)
