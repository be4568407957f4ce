"""The validity and the subject of a certificate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from light_scheduler.clock import Clock
from light_scheduler.errors import ConfigurationError

from .distinguished_names import subject_of
from .files import unreadable


class Validity(NamedTuple):
    """A certificate's subject in the form of Kafka's principals, and its period of validity (UTC epoch ms)."""

    subject: str
    begin: int
    end: int


def read_certificates(setting: str, path: Path) -> list[Validity]:
    """Return the certificates in a PEM file, in order. Raises ConfigurationError naming the setting."""
    from cryptography import x509  # slow to import, and most workers have no certificates

    try:
        loaded = x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise unreadable(setting, path, error) from None
    except ValueError:
        raise ConfigurationError(
            setting, f"{path} holds no certificate in PEM form: it must begin with -----BEGIN CERTIFICATE-----"
        ) from None
    return [
        Validity(subject_of(one.tbs_certificate_bytes), _ms(one.not_valid_before_utc), _ms(one.not_valid_after_utc))
        for one in loaded
    ]


def require_valid(setting: str, path: Path, certificates: Iterable[Validity], clock: Clock) -> None:
    """Raise ConfigurationError if any of a file's certificates is not valid now."""
    now = clock.now()
    for one in certificates:
        if one.end < now:
            reason = f"the certificate of {one.subject} in {path} expired on {_text(one.end)}: renew it"
            raise ConfigurationError(setting, reason)
        if one.begin > now:
            reason = (
                f"the certificate of {one.subject} in {path} is not valid before {_text(one.begin)}: check "
                "the clock of this machine"
            )
            raise ConfigurationError(setting, reason)


def _ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1_000)


def _text(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1_000, UTC).isoformat()
