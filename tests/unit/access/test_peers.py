"""Signatures by which workers know each other."""

from __future__ import annotations

import pytest

from light_scheduler.access.peers import LEEWAY_MS, is_signed, signed

NOW = 1_800_000_000_000
SECRET, WORKER, PATH = b"secret", "worker-1:6066", "/info?a=b"
HEADER = signed(SECRET, WORKER, PATH, NOW)


@pytest.mark.parametrize("now", [NOW, NOW + LEEWAY_MS, NOW - LEEWAY_MS])
def test_a_signature_holds_for_a_moment(now: int) -> None:
    assert is_signed(HEADER, SECRET, WORKER, PATH, now)


@pytest.mark.parametrize(
    ("header", "secret", "worker", "path", "now"),
    [
        (HEADER, b"other", WORKER, PATH, NOW),
        (HEADER, SECRET, "worker-2:6066", PATH, NOW),
        (HEADER, SECRET, WORKER, "/info", NOW),
        (HEADER, SECRET, WORKER, PATH, NOW + LEEWAY_MS + 1),
        (HEADER, SECRET, WORKER, PATH, NOW - LEEWAY_MS - 1),
        (HEADER.replace(str(NOW), str(NOW + 1)), SECRET, WORKER, PATH, NOW),
        ("", SECRET, WORKER, PATH, NOW),
        (f"{NOW}:", SECRET, WORKER, PATH, NOW),
        ("١:" + "0" * 64, SECRET, WORKER, PATH, NOW),
        (HEADER + "0", SECRET, WORKER, PATH, NOW),
    ],
)
def test_it_holds_for_one_worker_one_path_and_who_has_the_secret(
    header: str, secret: bytes, worker: str, path: str, now: int
) -> None:
    assert not is_signed(header, secret, worker, path, now)
