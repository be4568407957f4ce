"""Convert the jobs in a job store of APScheduler 3 to schedules, and run their functions when they fire.

$ python examples/clients/make_topic.py jobs
$ PYTHONPATH=. python examples/migrating/apscheduler_jobs.py sqlite:///jobs.sqlite take
$ PYTHONPATH=. python examples/migrating/apscheduler_jobs.py sqlite:///jobs.sqlite run

`take` does not change the job store, and can be repeated: the id of a schedule is that of its job.
"""

import asyncio
import json
import os
import re
import sys
from typing import Any

from apscheduler.job import Job
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from apscheduler.util import ref_to_obj

from light_scheduler import SchedulerClient
from light_scheduler.client import CommandRefused, Firing, FiringConsumer
from light_scheduler.errors import InvalidCommand

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")  # 0 is Monday in APScheduler 3, and Sunday in crontab


def rule(job: Job) -> dict[str, Any]:
    """Return the trigger of a job. Raises ValueError if it has no equivalent here."""
    trigger, grace = job.trigger, job.misfire_grace_time
    if isinstance(trigger, DateTrigger):
        return {"at": trigger.run_date, "ttl": None if grace is None else f"{grace}s"}
    if not isinstance(trigger, IntervalTrigger | CronTrigger):
        raise ValueError(f"{trigger} has no equal")
    missed = "skip" if grace is not None else "coalesce" if job.coalesce else "all"
    series = {"misfire": missed, "misfire_grace": None if grace is None else f"{grace}s", "end": trigger.end_date}
    if isinstance(trigger, IntervalTrigger):
        return {**series, "every": trigger.interval, "start": job.next_run_time or trigger.start_date}
    fields = {field.name: str(field) for field in trigger.fields}
    if fields["year"] + fields["week"] != "**" or re.search("[a-z]", fields["day"]) or "/" in fields["day_of_week"]:
        raise ValueError(f"{trigger} has no equal")
    # As in APScheduler, and unlike crontab, a day matches in Spring's dialect only if both of its fields match.
    days = re.sub(r"\d", lambda number: WEEKDAYS[int(number[0])], fields["day_of_week"])
    expression = " ".join((*(fields[name] for name in ("second", "minute", "hour", "day", "month")), days))
    zone = str(trigger.timezone)
    return {**series, "cron": expression, "cron_dialect": "spring", "timezone": zone, "start": trigger.start_date}


async def take(store: str) -> None:
    jobs = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(store)})
    jobs.start(paused=True)
    async with SchedulerClient(KAFKA) as scheduler:
        for job in jobs.get_jobs():
            is_paused = job.next_run_time is None
            try:
                payload = json.dumps({"func": job.func_ref, "args": job.args, "kwargs": job.kwargs}).encode()
                result = await scheduler.schedule(job.id, payload, topic="jobs", paused=is_paused, **rule(job))
                print(job.id, result.outcome)
            except (ValueError, TypeError, InvalidCommand, CommandRefused) as error:
                print(job.id, "not taken:", error)
    jobs.shutdown()


async def run(_: str) -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        consumer = FiringConsumer(scheduler, KAFKA, group_id="jobs")

        @consumer.on_firing("jobs")
        async def process(firing: Firing) -> None:
            job = json.loads(firing.payload or b"")
            await asyncio.to_thread(ref_to_obj(job["func"]), *job["args"], **job["kwargs"])

        await consumer.run()


if __name__ == "__main__":
    asyncio.run({"take": take, "run": run}[sys.argv[2]](sys.argv[1]))
