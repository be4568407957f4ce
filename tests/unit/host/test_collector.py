"""Python's collector of reference cycles."""

from __future__ import annotations

import gc

import pytest

from light_scheduler.host.collector import paused


def fail_without_it() -> None:
    with paused():
        assert not gc.isenabled()
        raise ValueError("why")


def test_it_goes_on_after_a_pause_that_an_error_ends() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="why"):
        fail_without_it()
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_so() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
