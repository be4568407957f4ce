"""Celery's side: `work` runs a worker, `submit FILE` submits work."""

import json
import os
import sys
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

from celery import Celery, signals

FOLDER = Path(os.environ["PEER_FOLDER"])
SETTINGS = json.loads(os.environ["PEER_SETTINGS"])

app = Celery("peer", broker=os.environ["PEER_STORE"])
app.conf.update({name: value for name, value in SETTINGS.items() if name.startswith(("task_", "worker_"))})
app.conf.broker_transport_options = {"visibility_timeout": SETTINGS["visibility_timeout"]}
app.conf.broker_connection_retry_on_startup = True

arrivals = os.open(FOLDER / "arrivals", os.O_WRONLY | os.O_APPEND)


@app.task(name="deliver")
def deliver(key, payload):
    os.write(arrivals, b"%s %d %d\n" % (key.encode(), time.time() * 1_000, zlib.crc32(bytes.fromhex(payload))))


@signals.worker_ready.connect
def ready(**_):
    (FOLDER / "ready").touch()


def submit(path):
    work = [line.split() for line in Path(path).read_text().splitlines()]
    with app.producer_pool.acquire(block=True) as producer:
        begun = time.monotonic()
        for key, due, payload in work:
            eta = datetime.fromtimestamp(int(due) / 1_000, UTC)
            deliver.apply_async((key, payload), eta=eta, producer=producer)
        seconds = time.monotonic() - begun
    (FOLDER / "submitted").write_text(str(seconds))


if sys.argv[1] == "submit":
    submit(sys.argv[2])
else:
    pool, concurrency = SETTINGS["pool"], str(SETTINGS["concurrency"])
    words = ["--pool", pool, "--concurrency", concurrency, "--loglevel", "WARNING"]
    app.worker_main(["worker", *words, "--without-gossip", "--without-mingle", "--without-heartbeat"])
