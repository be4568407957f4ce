"""Names and addresses of this machine that no other machine can reach."""

from __future__ import annotations

from ipaddress import ip_address

_NAME = "localhost"


def is_loopback(name: str) -> bool:
    """Return whether a name or address always means the local machine."""
    if name == _NAME or name.endswith("." + _NAME):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
