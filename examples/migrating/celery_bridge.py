"""Run Celery's tasks at light-scheduler's times: it replaces ETA, countdown and beat; Celery's workers stay.

$ python examples/clients/make_topic.py tasks
$ PYTHONPATH=. python examples/migrating/celery_bridge.py shop:app declare
$ PYTHONPATH=. python examples/migrating/celery_bridge.py shop:app run

`declare` converts the entries of beat_schedule to schedules; `run` sends a task to Celery's broker for each firing.
"""

import asyncio
import json
import os
import sys
from datetime import timedelta
from importlib import import_module
from typing import Any

from celery import Celery
from celery.schedules import crontab, schedule

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
scheduler = SchedulerClient(KAFKA, url=os.environ.get("SCHEDULER", "http://127.0.0.1:6066"))


def call(task: str, args: Any = (), kwargs: Any = None) -> bytes:
    """Return the payload of a task. Schedule it instead of calling `task.apply_async(args, kwargs, countdown=...)`."""
    return json.dumps({"task": task, "args": list(args), "kwargs": kwargs or {}}).encode()


def rule(when: crontab | schedule | timedelta | float, timezone: str) -> dict[str, Any]:
    """Return the trigger of an entry of beat_schedule."""
    if isinstance(when, crontab):
        # As in Celery, and unlike crontab, a day matches in Spring's dialect only if both of its fields match.
        fields = (when.minute, when.hour, when.day_of_month, when.month_of_year, when.day_of_week)
        expression = " ".join(("0", *map(field, fields, (60, 24, 31, 12, 7))))
        return {"cron": expression, "cron_dialect": "spring", "timezone": timezone}
    every = when.run_every if isinstance(when, schedule) else when
    return {"every": every if isinstance(every, timedelta) else timedelta(seconds=every)}


def field(values: set[int], possible: int) -> str:
    """Return a field of a cron expression with these values, out of `possible` ones."""
    return "*" if len(values) == possible else ",".join(map(str, sorted(values)))


async def declare(app: Celery) -> None:
    async with scheduler:
        for name, entry in (app.conf.beat_schedule or {}).items():
            payload = call(entry["task"], entry.get("args") or (), entry.get("kwargs"))
            expires = (entry.get("options") or {}).get("expires")
            await scheduler.schedule(
                f"beat-{name}",
                payload,
                topic="tasks",
                ttl=None if expires is None else timedelta(seconds=expires),
                **rule(entry["schedule"], app.conf.timezone or "UTC"),
            )
            print("declared", name)


async def run(app: Celery) -> None:
    consumer = FiringConsumer(scheduler, KAFKA, group_id="celery-bridge")

    @consumer.on_firing("tasks")
    async def send(firing: Firing) -> None:
        task = json.loads(firing.payload or b"")
        await asyncio.to_thread(app.send_task, task["task"], task["args"], task["kwargs"], task_id=firing.delivery_id)
        print("sent", task["task"], firing.id, flush=True)

    async with scheduler:
        await consumer.run()


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    asyncio.run({"declare": declare, "run": run}[sys.argv[2]](getattr(import_module(module), name)))
