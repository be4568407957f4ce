"""Logins in URLs: whether there is one, and the URL without it, for errors and logs."""

from __future__ import annotations

import re

_LOGIN = re.compile(r"^(\s*[a-z][a-z0-9+.-]*://)?.*@", re.DOTALL | re.IGNORECASE)
"""All up to the last @: in a URL that is malformed, a password may go on after a slash."""
_PASSWORD = re.compile(r"^[^:/?#]+://[^:/]*:[^@]+@|[?&](ssl)?pass(word|wd)?=[^&]", re.IGNORECASE)


def without_login(url: str) -> str:
    """Return a URL, or what was meant to be one, without a user and a password."""
    return _LOGIN.sub(r"\1", url)


def has_login(url: str) -> bool:
    """Return whether there may be a user or a password in a URL."""
    return "@" in url


def has_password(url: str) -> bool:
    """Return whether there is a password in the URL of a database: before its host, or as a parameter."""
    return _PASSWORD.search(url) is not None
