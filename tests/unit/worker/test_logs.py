from __future__ import annotations

import json
import logging
import sys

from light_scheduler.worker.logs import JsonFormatter, logging_config


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
