"""Labels are bounded: lists and bulk commands hold many of them at a time."""

from __future__ import annotations

import pytest

from light_scheduler.wire.fields import MAX_LABEL_BYTES, MAX_LABELS, MAX_LABELS_BYTES, labels_of, parse_labels


def test_as_many_labels_as_are_allowed_are_taken() -> None:
    assert len(parse_labels(",".join(f"l{number}=x" for number in range(MAX_LABELS)))) == MAX_LABELS
    assert labels_of([("ä" * 10, "x" * (MAX_LABEL_BYTES - 20))])


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ([(f"l{number}", "x") for number in range(MAX_LABELS + 1)], f"at most {MAX_LABELS} labels"),
        ([("name", "x" * (MAX_LABEL_BYTES - 3))], "label 'name' has 513 bytes; at most 512 are allowed"),
        ([("ä" * 256, "x")], "has 513 bytes"),
        ([(f"l{number}", "x" * 500) for number in range(MAX_LABELS_BYTES // 500 + 1)], "with 8,192 bytes in all"),
    ],
)
def test_more_or_longer_ones_are_refused(pairs: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        labels_of(pairs)
