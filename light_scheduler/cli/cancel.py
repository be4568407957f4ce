"""`light-scheduler cancel`: cancel one schedule."""

from __future__ import annotations

import click

from light_scheduler.client import Receipt, SchedulerClient
from light_scheduler.model import DEFAULT_TENANT, Result
from light_scheduler.settings import Settings

from .answers import Duration, send_command
from .options import json_option, settings_options


@click.command("cancel")
@click.argument("id")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose schedule it is.")
@click.option("--key", metavar="KEY", help="Entity key that it was scheduled with; default: the id.")
@click.option("--expected-version", type=int, metavar="N", help="Version that the schedule must have.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the scheduler's answer.")
@click.option("--timeout", type=Duration(), default="30s", show_default=True, help="How long to wait for the answer.")
@settings_options("app_id", "broker", "commands_topics")
@json_option
def command(
    settings: Settings,
    as_json: bool,
    id: str,
    tenant: str,
    key: str | None,
    expected_version: int | None,
    no_wait: bool,
    timeout: int,
) -> None:
    """Cancel a schedule by its ID and print the scheduler's answer.

    Exit code 1: there is no such schedule, the scheduler refused or did not answer in time, or the broker cannot be
    reached.
    """

    async def send(client: SchedulerClient) -> Result | Receipt:
        if no_wait:
            return await client.cancel(
                id, key=key, expected_version=expected_version, wait=False, timeout=timeout / 1_000
            )
        return await client.cancel(
            id, key=key, expected_version=expected_version, timeout=timeout / 1_000, raise_on_refusal=False
        )

    send_command(settings, tenant, send, as_json=as_json)
