"""Files that settings name: secrets and certificates, read again when they change."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from light_scheduler.errors import ConfigurationError

from .secret import Secret

log = logging.getLogger(__name__)


class Stamp(NamedTuple):
    """A fingerprint that changes with the content of a file. It follows links, since Kubernetes replaces a link, not
    the file."""

    modified_ns: int
    changed_ns: int
    """Changes with the file's rights and owner, too: it may become readable."""
    size: int
    inode: int


def stamps(paths: tuple[Path, ...]) -> tuple[Stamp | None, ...]:
    """Return the stamp of each file; None for a file that cannot be examined."""
    return tuple(_stamp(path) for path in paths)


def require_readable(setting: str, path: Path) -> None:
    """Raise ConfigurationError naming the setting if its file cannot be read."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise unreadable(setting, path, error) from None


def unreadable(setting: str, path: Path, error: OSError) -> ConfigurationError:
    """Return the error for a file that cannot be read, with advice."""
    what = error.strerror or type(error).__name__
    fix = {
        FileNotFoundError: "name a file that exists",
        PermissionError: "let the user that runs this read it",
        IsADirectoryError: "name a file, not a folder",
    }.get(type(error), "name a file that can be read")
    return ConfigurationError(setting, f"{path} cannot be read ({what}): {fix}")


class SecretFile:
    """A secret in a file, without a byte order mark and the final line break. It is read again when the file
    changes."""

    def __init__(self, setting: str, path: Path) -> None:
        self._setting = setting
        self._path = path
        self._stamp: Stamp | None = None
        self._secret: Secret | None = None

    def read(self) -> Secret:
        """Return the content of the file, or its last content if it cannot be read any more.

        Raises ConfigurationError if it could never be read.
        """
        stamp = _stamp(self._path)
        if self._secret is not None and stamp == self._stamp:
            return self._secret
        try:
            self._secret, self._stamp = self._read(), stamp
        except ConfigurationError as error:
            if self._secret is None:
                raise
            log.warning("%s; the previous value stays in use", error)
        return self._secret

    def _read(self) -> Secret:
        try:
            text = self._path.read_text(encoding="utf-8-sig").rstrip("\r\n")
        except OSError as error:
            raise unreadable(self._setting, self._path, error) from None
        except UnicodeDecodeError:  # its text would quote the secret
            raise ConfigurationError(self._setting, f"{self._path} must be text in UTF-8") from None
        if not text:
            raise ConfigurationError(self._setting, f"{self._path} is empty: write the secret into it")
        return Secret(text)


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
