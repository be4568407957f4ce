"""APScheduler's side: runs a scheduler and adds the jobs that arrive in the file `work`."""

import json
import os
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

FOLDER = Path(os.environ["PEER_FOLDER"])
SETTINGS = json.loads(os.environ["PEER_SETTINGS"])

arrivals = os.open(FOLDER / "arrivals", os.O_WRONLY | os.O_APPEND)


def deliver(key, payload):
    os.write(arrivals, b"%s %d %d\n" % (key.encode(), time.time() * 1_000, zlib.crc32(payload)))


def take(scheduler, path):
    work = [line.split() for line in path.read_text().splitlines()]
    path.unlink()
    begun = time.monotonic()
    for key, due, payload in work:
        when = datetime.fromtimestamp(int(due) / 1_000, UTC)
        scheduler.add_job("__main__:deliver", "date", run_date=when, args=(key, bytes.fromhex(payload)), id=key)
    told = FOLDER / "told"
    told.write_text(str(time.monotonic() - begun))
    told.rename(FOLDER / "submitted")


def main():
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=os.environ["PEER_STORE"])},
        executors={"default": ThreadPoolExecutor(SETTINGS["threads"])},
        job_defaults={"misfire_grace_time": SETTINGS["misfire_grace_time"]},
        timezone=UTC,
    )
    scheduler.start()
    (FOLDER / "ready").touch()
    while True:
        if (FOLDER / "work").exists():
            take(scheduler, FOLDER / "work")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
