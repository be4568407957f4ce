"""`light-scheduler schedule`: schedule one message, once or as a series."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import click

from light_scheduler.client import ScheduleRequest
from light_scheduler.client.commands import new_id, schedule_command
from light_scheduler.clock import SystemClock

from .answers import Sender, sending_options
from .examples import examples
from .header_options import header_options
from .schedule_request import DELIVERY, TIME_AND_TARGET, decoded, key_option, request_of


@click.command(
    "schedule",
    epilog=examples(
        'schedule --id order-1 --after 15m --target-topic reminders --payload "pay!"',
        'schedule --id daily --cron "0 9 * * 1-5" --timezone Europe/Prague --target-topic reminders',
        "schedule --id poll --every 5m --max-firings 100 --target-topic reminders",
        "schedule --from-file schedules.jsonl",
    ),
)
@click.option("--id", metavar="ID", help="Id of the schedule. Default: the key, or a new id.")
@key_option
@header_options(*TIME_AND_TARGET)
@click.option("--payload", metavar="TEXT", help="Payload of the message as text. Default: empty.")
@click.option("--payload-file", type=click.File("rb"), metavar="FILE", help="Read the payload from a file; - is stdin.")
@click.option("--payload-base64", metavar="BASE64", help="Payload of the message as base64.")
@click.option("--payload-null", is_flag=True, help="Deliver a null value: a tombstone for the target topic.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Add a header to the message. Can be repeated."
)
@header_options(*DELIVERY)
@click.option(
    "--from-file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send the commands of a file: JSON Lines, or CSV if its name ends in .csv. Repeat it to continue.",
)
@click.option(
    "--refused",
    "refused_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --from-file: write refused rows and the reasons to this file. Default: FILE.refused.jsonl.",
)
@sending_options
def command(
    sender: Sender,
    payload: str | None,
    payload_file: IO[bytes] | None,
    payload_base64: str | None,
    payload_null: bool,
    headers: tuple[str, ...],
    path: Path | None,
    refused_path: Path | None,
    **given: Any,
) -> None:
    """Schedule a message and print the scheduler's answer.

    Choose the time with one of --at, --after, --every, --cron and --backoff. Without any of them the message is
    delivered now. `light-scheduler preview` takes the same options, except for payload and headers of the message, and
    shows when a schedule fires. Without --target-topic, the message goes to the default target of the tenant.

    With --from-file, each line is a command in the JSON form, or a row whose columns are these options.

    Exit code 1: the scheduler refused the command or did not answer in time, or the broker cannot be reached.
    """
    if path is not None:
        from .schedule_file import load

        _refuse_others(*given.values(), headers, payload, payload_file, payload_base64, payload_null)
        load(sender, path, "csv" if path.suffix.lower() == ".csv" else "jsonl", refused_path)
        return
    if refused_path is not None:
        raise click.UsageError("--refused needs --from-file")
    request = request_of(given)
    request["headers"] = [_header(header) for header in headers]
    request["payload"] = _payload(payload, payload_file, payload_base64, payload_null)
    generated_id = new_id(SystemClock())
    whole = ScheduleRequest(**request)  # type: ignore[typeddict-item]  # text stands for every type of argument
    sender.send(
        lambda reply_to: schedule_command(sender.tenant, whole, generated_id=generated_id, reply_to=reply_to),
        find=None if "key" in request else request.get("id"),
    )


def _refuse_others(*given: Any) -> None:
    """Refuse options of a single schedule together with --from-file."""
    if any(given):
        raise click.UsageError(
            "--from-file cannot be combined with options of one schedule: put them into the rows of the file"
        )


def _payload(text: str | None, file: IO[bytes] | None, encoded: str | None, null: bool) -> bytes | None:
    options = (
        ("--payload", text is not None),
        ("--payload-file", file is not None),
        ("--payload-base64", encoded is not None),
        ("--payload-null", null),
    )
    given = [name for name, is_given in options if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} are given together: a message has one payload. Give one of them")
    if null:
        return None
    if file is not None:
        return file.read()
    if encoded is not None:
        return decoded("--payload-base64", encoded)
    return (text or "").encode()


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value
