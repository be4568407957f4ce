"""Batches as hostile or careless senders write them: each line has an answer of its own, by number and field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .test_batch import ONCE, answers

RIGHT = json.dumps({"id": "right", **ONCE}).encode()
OPEN = RIGHT[:-1]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"\xff\xfe" + RIGHT, "body"),
        (RIGHT.replace(b"right", b"caf\xe9"), "id"),
        (RIGHT.replace(b"right", b"\xed\xa0\x80"), "id"),
        (RIGHT.replace(b"right", b"\\ud800"), "body"),
        (RIGHT.replace(b"right", b"a\0b"), "body"),
        (RIGHT.replace(b"right", b"a\\u0000b"), "id"),
        (RIGHT.replace(b"right", b"a\\u001b[2Jb"), "id"),
        (OPEN + b', "payload": ' + b"[" * 100_000 + b"}", "body"),
        (b"[" * 100_000, "body"),
        (b'{"a":' * 100_000, "body"),
        (RIGHT + RIGHT, "body"),
        (RIGHT + b"\r" + RIGHT, "body"),
        (OPEN, "body"),
        (b"[" + RIGHT + b"]", "body"),
        (b"null", "body"),
        (b'"' + b"x" * 1_000 + b'"', "body"),
        (OPEN + b', "priority": ' + b"9" * 5_000 + b"}", "priority"),
        (OPEN + b', "priority": 1e400}', "priority"),
        (OPEN + b', "priority": NaN}', "body"),
        (OPEN + b', "": 1}', '""'),
        (OPEN + b', "tenant": "other"}', "tenant"),
        (OPEN + b', "reply_topic": "mine"}', "reply_topic"),
        (OPEN + b', "command": "cancel"}', "command"),
    ],
    ids=range(23),
)
async def test_a_line_that_is_no_command_is_answered_by_its_member_and_the_next_one_is_carried_out(
    workers: Any, line: bytes, told: str
) -> None:
    first, last = await answers(workers[0], b"\n \r\n" + line + b"\n" + RIGHT)
    assert (first["line"], first["status"]) == (3, 400)
    problem = first["problem"]
    assert problem["detail"]
    assert problem["parameter"] == told, problem
    assert (last["line"], last["status"], last["result"]["id"]) == (4, 201, "right")


@pytest.mark.parametrize(
    "data",
    [
        RIGHT,
        RIGHT + b"\r\n",
        b"\xef\xbb\xbf" + RIGHT + b"\n",
        b"\n\n\t \r\n" + RIGHT + b"\n\n",
        b"  " + RIGHT + b"\t\n",
    ],
)
async def test_lines_as_programs_write_them_are_read(workers: Any, data: bytes) -> None:
    (only,) = await answers(workers[0], data)
    assert (only["status"], only["result"]["id"]) == (201, "right")


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n \t\n" * 10_000])
async def test_a_batch_without_lines_has_no_answers(workers: Any, data: bytes) -> None:
    assert await answers(workers[0], data) == []


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_body_that_is_not_compressed_as_it_says_is_refused(workers: Any, encoding: str) -> None:
    found = await answers(workers[0], RIGHT, headers={"Content-Encoding": encoding})
    (only,) = found
    assert (only["line"], only["status"]) == (1, 400)
    assert only["problem"]["detail"]
