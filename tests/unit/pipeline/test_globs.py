"""Patterns of paths that Hadoop cannot read are refused with what to write."""

from __future__ import annotations

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import require_pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("/data/[b-a]", r"its range b-a begins after its end. Write a-b, or, for three characters, b\-a"),
        (r"/data/[z-\]]", r"its range z-\] begins after its end. Write \]-z, or, for three characters, z\-\]"),
        ("/data/[^]", "a [ in it has no ]"),
        ("/data/[]/in", "a [ in it has no ]"),
        ("/data/[a/b]", "a [ in it has no ]"),
        ("/data/{[a,b]}", "a [ in it has no ]"),
        ("/data/{a,b", "a { in it has no }"),
        ("/data/[{a,b}]", "the set [{a,b}] has a { in it"),
        ("/data/[a[b]", "the set [a[b] has a [ in it"),
        (r"/data/in\d*", r"\d in it is no character that needs a backslash"),
        (r"/data/in[\d]", r"\d in it is no character that needs a backslash"),
        (r"/data/[a-\é]", r"\é in it is no character that needs a backslash"),
        ("/data/in\\", "it, or a name in it, ends with a backslash"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_what_to_write(pattern: str, why: str) -> None:
    with pytest.raises(JobError) as refused:
        require_pattern(pattern)
    assert str(refused.value).startswith(f"the table {pattern} is a pattern that cannot be read: {why}")
    assert "Write " in str(refused.value)


@pytest.mark.parametrize(
    "pattern", ["/data/in", "a}", "[]a]", r"[\[\]\{\}]", "{a,{b,c}}/*", "s3a://bucket/[!a-c]?", r"\{a\}"]
)
def test_a_pattern_that_can_be_read_is_not_refused(pattern: str) -> None:
    require_pattern(pattern)
