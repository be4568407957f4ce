from __future__ import annotations

import asyncio
import json
import logging
import logging.config
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mode import Service

from light_scheduler import logs
from light_scheduler.errors import ConfigurationError
from light_scheduler.log_fields import begin_log_fields, log_fields
from light_scheduler.logs import JsonFormatter, Thinned, logging_config


def record() -> logging.LogRecord:
    line = logging.LogRecord("lane", logging.WARNING, "x.py", 1, "%d schöne\nlines", (2,), None)
    line.created, line.msecs = 1_767_225_600.007, 7.0
    return line


def test_a_json_log_line_is_one_object_on_one_line() -> None:
    text = JsonFormatter().format(record())
    line = json.loads(text)
    assert "\n" not in text
    assert line.pop("at") == "2026-01-01T00:00:00.007Z"
    assert line == {"level": "WARNING", "logger": "lane", "message": "2 schöne\nlines"}


async def test_lines_in_json_say_what_they_are_about_in_each_task_of_its_own() -> None:
    async def line_of(partition: int) -> dict[str, object]:
        begin_log_fields({"topic": "orders", "partition": partition})
        await asyncio.sleep(0)
        with log_fields(schedule="a", tenant=None):
            found: dict[str, object] = json.loads(JsonFormatter().format(record()))
        assert "schedule" not in json.loads(JsonFormatter().format(record()))
        return found

    first, second = await asyncio.gather(line_of(0), line_of(1))
    assert (first["topic"], first["partition"], second["partition"]) == ("orders", 0, 1)
    assert first["schedule"] == "a"
    assert "tenant" not in first
    assert "partition" not in json.loads(JsonFormatter().format(record()))


def test_a_text_log_line_has_the_instant_in_utc_with_its_offset(capsys: pytest.CaptureFixture[str]) -> None:
    with configured("INFO", "text"):
        logging.getLogger().handle(record())
    assert capsys.readouterr().err == "[2026-01-01T00:00:00.007Z] [WARNING] lane: 2 schöne\\nlines\n"


@pytest.mark.parametrize(
    ("sent", "shown"), [("a\r\n[x] [ERROR] b", "a\\r\\n[x] [ERROR] b"), ("\x1b[2J\x85\u2028", "\\x1b[2J\\x85\\u2028")]
)
def test_what_somebody_sent_is_no_line_of_its_own_in_a_text_log(
    sent: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with configured("INFO", "text"):
        try:
            raise ValueError("wrong")
        except ValueError:
            logging.getLogger("x").exception("%s logged in", sent)
    first, *traceback = capsys.readouterr().err.splitlines()
    assert first.endswith(f" x: {shown} logged in")
    assert traceback[0].startswith("Traceback")
    assert traceback[-1] == "ValueError: wrong"


@pytest.mark.parametrize(
    ("layout", "begin"),
    [("text", "[2026-01-01T00:00:00.007Z] [WARNING] [3] lane: 2 sch"), ("json", '{"process":"3","at":')],
)
def test_a_line_of_one_of_several_processes_says_which(
    layout: str, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with configured("INFO", layout, process="3"):
        logging.getLogger().handle(record())
    assert capsys.readouterr().err.startswith(begin)


@contextmanager
def configured(level: str, layout: str, process: str | None = None) -> Iterator[None]:
    """Log as a worker does."""
    root, client = logging.getLogger(), logging.getLogger("aiokafka")
    before = root.handlers[:], root.level, client.level
    try:
        logging.config.dictConfig(logging_config(level, layout, process))
        yield
    finally:
        root.handlers, root.level = before[0], before[1]
        client.setLevel(before[2])


class Idle(Service):
    """A service of the framework, as lanes and the application are."""


@pytest.mark.parametrize(("level", "told"), [("INFO", False), ("DEBUG", True)])
async def test_starts_and_stops_of_services_are_told_only_to_who_debugs(
    level: str, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with configured(level, "text"):
        service = Idle()
        async with service:
            service.log.warning("a warning of it")
    errors = capsys.readouterr().err
    assert ("Starting..." in errors) is told
    assert "a warning of it" in errors


def test_a_bad_setting_is_one_line_without_a_traceback_however_often_it_is_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with configured("INFO", "text"):
        for _ in range(2):
            try:
                raise ConfigurationError("web_port", "port 1 is in use")
            except ConfigurationError as error:
                logging.getLogger("faust").exception("Error: %r", error)
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logging.getLogger("faust").exception("a bug")
    errors = capsys.readouterr().err
    assert errors.count("setting web_port: port 1 is in use") == 1
    assert errors.count("Traceback") == 1, "of the bug, whose place helps"


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
    assert [said(thinned, "light_scheduler.lanes.lane", "starts again") for _ in range(3)] == ["starts again"] * 3


def test_messages_that_are_never_the_same_take_no_more_and_more_memory() -> None:
    thinned = Thinned()
    for number in range(3 * logs.MAX_REMEMBERED):
        assert said(thinned, "aiokafka", "offset %d", number) is not None
    assert len(thinned._said) <= logs.MAX_REMEMBERED


def test_the_configuration_thins_what_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with configured("INFO", "text"):
        for _ in range(5):
            logging.getLogger("aiokafka").error("cannot connect")
    assert capsys.readouterr().err.count("cannot connect") == 1


def test_what_a_new_broker_answers_until_it_is_ready_is_said_only_if_it_lasts() -> None:
    now = 0.0
    thinned = Thinned(lambda: now)
    passing = ("aiokafka", "Group Coordinator Request failed: GroupCoordinatorNotAvailableError")
    assert [said(thinned, *passing) for _ in range(3)] == [None] * 3
    now = logs.REPEAT_S
    assert said(thinned, *passing) == f"{passing[1]} (and 3 times since this was last said)"
