"""Whether a port is free is asked of the addresses that a server would bind, IPv4 and IPv6."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from light_scheduler.host.ports import free_port, port_is_free

HAS_IPV6 = port_is_free(free_port(), "::1")
needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6 loopback address")


@contextmanager
def listening(host: str, family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """Listen on a port of one address only; yield the port."""
    port = free_port()
    with socket.create_server((host, port), family=family):
        yield port


def test_a_port_is_in_use_where_something_listens_and_free_afterwards() -> None:
    with listening("127.0.0.1") as port:
        assert not port_is_free(port)
    assert port_is_free(port)


@needs_ipv6
def test_an_ipv6_address_is_probed_as_such() -> None:
    with listening("::1", socket.AF_INET6) as port:
        assert not port_is_free(port, "::1")
        assert port_is_free(port, "127.0.0.1")
    assert port_is_free(port, "::1")


@needs_ipv6
def test_of_a_name_and_of_all_addresses_both_families_are_probed() -> None:
    addresses = {address[4][0] for address in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)}
    with listening("::1", socket.AF_INET6) as port:
        assert not port_is_free(port, "::")
        assert port_is_free(port, "localhost") is ("::1" not in addresses)
    with listening("127.0.0.1") as port:
        assert not port_is_free(port, "0.0.0.0")
        assert not port_is_free(port, "localhost")


def test_a_server_cannot_listen_where_this_machine_has_no_address() -> None:
    assert not port_is_free(free_port(), "192.0.2.1")
    assert not port_is_free(free_port(), "no-such-host.invalid")
