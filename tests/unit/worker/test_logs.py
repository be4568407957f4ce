from __future__ import annotations

import json
import logging
import logging.config
import sys

import pytest

from light_scheduler.worker import logs
from light_scheduler.worker.logs import JsonFormatter, Thinned, logging_config


def record() -> logging.LogRecord:
    line = logging.LogRecord("lane", logging.WARNING, "x.py", 1, "%d schöne\nlines", (2,), None)
    line.created, line.msecs = 1_767_225_600.007, 7.0
    return line


def test_a_json_log_line_is_one_object_on_one_line() -> None:
    text = JsonFormatter().format(record())
    line = json.loads(text)
    assert "\n" not in text
    assert line.pop("at").endswith(":00.007")
    assert line == {"level": "WARNING", "logger": "lane", "message": "2 schöne\nlines"}


def test_a_json_log_line_of_an_error_has_its_traceback() -> None:
    failed = record()
    try:
        raise ValueError("broken")
    except ValueError:
        failed.exc_info = sys.exc_info()
    line = json.loads(JsonFormatter().format(failed))
    assert line["error"].startswith("Traceback")
    assert line["error"].endswith("ValueError: broken")


def test_lines_of_the_chosen_level_go_to_standard_error_in_the_chosen_layout() -> None:
    for layout in ("text", "json"):
        config = logging_config("DEBUG", layout)
        assert config["root"] == {"handlers": ["stderr"], "level": "DEBUG"}
        assert config["handlers"]["stderr"]["formatter"] in config["formatters"]
        assert config["handlers"]["stderr"]["formatter"] == layout


def said(thinned: Thinned, logger: str, template: str, *args: object) -> str | None:
    """Return what is written of a message, if anything is."""
    line = logging.LogRecord(logger, logging.ERROR, "x.py", 1, template, args, None)
    return line.getMessage() if thinned.filter(line) else None


def test_what_the_kafka_client_repeats_is_said_once_in_a_while_with_a_count() -> None:
    now = 0.0
    thinned = Thinned(lambda: now)
    away = ("aiokafka.conn", "cannot connect to node %d")

    assert said(thinned, *away, 1) == "cannot connect to node 1"
    assert said(thinned, *away, 2) == "cannot connect to node 2", "another node is another message"
    assert [said(thinned, *away, 1) for _ in range(500)] == [None] * 500
    now = logs.REPEAT_S
    assert said(thinned, *away, 1) == "cannot connect to node 1 (and 500 times since this was last said)"
    assert said(thinned, *away, 2) == "cannot connect to node 2"
    now = 3 * logs.REPEAT_S
    assert said(thinned, *away, 1) == "cannot connect to node 1"


def test_what_others_repeat_is_always_said() -> None:
    thinned = Thinned()
    assert [said(thinned, "light_scheduler.worker.lane", "starts again") for _ in range(3)] == ["starts again"] * 3


def test_messages_that_are_never_the_same_take_no_more_and_more_memory() -> None:
    thinned = Thinned()
    for number in range(3 * logs.MAX_REMEMBERED):
        assert said(thinned, "aiokafka", "offset %d", number) is not None
    assert len(thinned._said) <= logs.MAX_REMEMBERED


def test_the_configuration_thins_what_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    root, client = logging.getLogger(), logging.getLogger("aiokafka")
    before = root.handlers[:], root.level, client.level
    try:
        logging.config.dictConfig(logging_config("INFO", "text"))
        for _ in range(5):
            client.error("cannot connect")
        assert capsys.readouterr().err.count("cannot connect") == 1
    finally:
        root.handlers, root.level = before[0], before[1]
        client.setLevel(before[2])
