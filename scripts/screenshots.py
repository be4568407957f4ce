"""Takes the documentation's pictures of the dashboard, from an application with made-up schedules.

    python scripts/screenshots.py docs

It starts a Kafka and two workers, and needs a Chromium (see `scripts/browser.py`).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, expect, sync_playwright

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.settings import load_settings

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.chromium import find_chromium

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
LINE_TIMEOUT_MS = 360_000
LINE = re.compile(r"( \S+){6}")
"""Enough points for a line that is worth showing: workers record one every half minute."""

TOPICS = ("reminders", "emails", "webhooks")
SOURCES = ("carts", "webhooks-failed", "trials")
RULES = {
    "cart-reminder": {"source": "carts", "delay": "24h", "target": "reminders"},
    "retry-webhook": {"source": "webhooks-failed", "delay": "20s", "target": "webhooks"},
    "trial-ends": {"source": "trials", "delay": "14d", "target": "emails"},
}
DETAIL = "tenant=shop&id=daily-report"


class Picture(NamedTuple):
    """A page, and how to show it. It is taken once the page shows something; `height` crops it."""

    name: str
    address: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int = 800
    shows: str = "h1"


PICTURES = (
    Picture("schedules", "schedules?tenant=shop&label=team%3Dsales", height=560),
    Picture("schedule", f"schedule?{DETAIL}", "dark", height=1420),
    Picture("upcoming", "upcoming?tenant=shop&by=hour", height=800),
    Picture("tenants", "tenants", height=400),
    Picture("partitions", "partitions", height=400, shows="td[data-name='Warm standbys']:has-text('up to date')"),
    Picture("delays", "delays", height=620, shows="td[data-name='Forwarded']:has-text('9')"),
    Picture("new", "new?tenant=shop", "dark", height=700),
    Picture("overview", "overview"),
    Picture("overview-dark", "overview", "dark"),
    Picture("phone", "overview", width=390, height=844),
)

OF_DEAD_LETTERS = (
    Picture("dead-letters", "dead-letters", height=520, shows="tr:has-text('Refused')"),
    Picture("health", "health", height=660),
    Picture("configuration", "configuration", "dark", height=640),
    Picture("phone-dead-letters", "dead-letters", "dark", width=390, height=844, shows="tr:has-text('Refused')"),
)
"""Pages that show dead letters, and one more. The overview is taken before there are any."""


def schedules(now: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield tenants, each with a schedule: one per second at first, most of the others soon, some later."""
    chance = random.Random(7)  # nosec B311
    for tenant, number in (("shop", 600), ("billing", 150), ("newsletter", 60)):
        for order in range(number):
            evening = max(0, chance.gauss(15, 3)) * HOUR_MS
            ahead = chance.choice([chance.expovariate(1 / (3 * HOUR_MS)), evening, chance.uniform(0, 9 * DAY_MS)])
            yield (
                tenant,
                {
                    "id": f"{tenant}-{1000 + order}-{chance.choice(['reminder', 'expiry', 'follow-up'])}",
                    "trigger": {"at": now + 120_000 + int(ahead)},
                    "target": {"topic": chance.choice(TOPICS)},
                    "labels": {"team": chance.choice(["sales", "support"]), "kind": chance.choice(["mail", "push"])},
                    "payload": {"text": json.dumps({"order": 1000 + order})},
                },
            )
    for second in range(420):
        target = {"topic": "reminders"}
        yield "shop", {"id": f"cart-{second}", "trigger": {"at": now + 30_000 + 1_000 * second}, "target": target}
    payload = {"customer": "acme", "total": 12.5, "items": [{"sku": "A-1", "count": 2}], "notify": True}
    yield (
        "shop",
        {
            "id": "daily-report",
            "trigger": {"cron": "0 9 * * 1-5", "timezone": "Europe/Prague"},
            "target": {"topic": "reminders", "key": "acme", "headers": {"kind": "report"}},
            "labels": {"team": "sales"},
            "payload": {"text": json.dumps(payload)},
        },
    )


def send(url: str, method: str, body: str) -> None:
    """Send a request that must succeed."""
    request = urllib.request.Request(url, body.encode(), method=method)
    with urllib.request.urlopen(request) as response:  # nosec B310
        response.read()


def seed(url: str) -> None:
    """Create schedules, and tenants with rules."""
    lines: dict[str, list[str]] = {}
    for tenant, schedule in schedules(SystemClock().now()):
        lines.setdefault(tenant, []).append(json.dumps(schedule))
    for tenant, each in lines.items():
        send(f"{url}/api/v1/tenants/{tenant}/schedules:batch", "POST", "\n".join(each))
    rules = {"max_pending": 5_000, "firings_per_second": 200, "weight": 2}
    send(f"{url}/api/v1/tenants/newsletter", "PUT", json.dumps({"targets": [*TOPICS, "news-*"], **rules}))
    send(f"{url}/api/v1/tenants/shop", "PUT", json.dumps({"max_pending": 1_050, "max_payload_bytes": 65_536}))
    send(f"{url}/api/v1/tenants/shop/schedules/daily-report/trigger", "POST", "")


def add_rules(url: str) -> None:
    """Add delay rules, with records under way in each."""
    for name, rule in RULES.items():
        send(f"{url}/api/v1/delays/{name}", "PUT", json.dumps(rule))
    lines = [
        json.dumps(
            {"id": f"{source}-{number}", "trigger": {"after": 0}, "target": {"topic": source, "key": f"k-{number}"}}
        )
        for source in SOURCES
        for number in range(9)
    ]
    send(f"{url}/api/v1/tenants/shop/schedules:batch", "POST", "\n".join(lines))


def add_dead_letters(url: str) -> None:
    """Create dead letters: rejected commands, and firings that are not completed or that their topic refuses."""
    late: dict[str, object] = {
        "trigger": {"at": SystemClock().now() - HOUR_MS},
        "on_past": "reject",
        "target": {"topic": "reminders"},
    }
    unanswered = {"trigger": {"after": 0}, "target": {"topic": "webhooks"}, "ack_timeout": "1s", "max_attempts": 1}
    refused = {"trigger": {"after": 0}, "target": {"topic": "emails", "partition": 40}, "payload": {"text": "{}"}}
    bodies: list[dict[str, object]] = [{"id": f"order-{1742 + number}", **late} for number in range(3)]
    bodies += [{"id": "hook-88", **unanswered}, {"id": "invoice-12", **refused}]
    for tenant in ("shop", "billing"):
        lines = [json.dumps(body) for body in bodies]
        send(f"{url}/api/v1/tenants/{tenant}/schedules:batch", "POST", "\n".join(lines))


def take(browser: Browser, url: str, picture: Picture, folder: Path) -> None:
    """Take one picture, once the page has loaded its data."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        timezone_id="Europe/Prague",
    )
    with closing(context):
        page = context.new_page()
        page.goto(f"/#/{picture.address}")
        expect(page.locator(".loading")).to_have_count(0, timeout=20_000)
        expect(page.locator(picture.shows).first).to_be_visible(timeout=LINE_TIMEOUT_MS)
        if picture.address == "overview":
            expect(page.locator(".bars rect").first).to_be_attached(timeout=20_000)
            line = page.locator(".chart polyline").first
            expect(line).to_have_attribute("points", LINE, timeout=LINE_TIMEOUT_MS)
            expect(page.locator(".tile .value", has_text="–")).to_have_count(0, timeout=20_000)
        page.screenshot(path=folder / f"dashboard-{picture.name}.png", animations="disabled")


@contextmanager
def working_folder() -> Iterator[Path]:
    """Create a folder with a presentable name, and remove it at the end."""
    folder = Path(tempfile.gettempdir()) / "light-scheduler"
    try:
        folder.mkdir()
    except FileExistsError:
        sys.exit(f"{folder} is there already: another run uses it, or left it behind. Remove it, then start again.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def application(folder: Path) -> Iterator[str]:
    """Run Kafka and two workers. Yield the address of one worker."""
    with EmbeddedBroker(port=free_port(), data_dir=folder / "kafka") as broker, ExitStack() as stack:
        options = {"broker": f"kafka://{broker.bootstrap_servers}", "probe_interval": "5s", "standby_replicas": "1"}
        options |= {"delivery_retries": "0"}
        settings = load_settings(options, environment={})
        create_topics(settings)
        for topic in TOPICS:
            create_topic(settings.bootstrap_servers, topic, settings.partitions)
        for topic in SOURCES:
            create_topic(settings.bootstrap_servers, topic, 1)
        for number in range(2):
            own = {"web_port": str(free_port()), "data_dir": str(folder / f"worker-{number}")}
            worker = WorkerProcess(load_settings(options | own, environment={}), folder / f"worker-{number}.log")
            worker.start()
            stack.callback(worker.stop)
            worker.wait_ready()
        yield worker.url


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Take the pictures of the dashboard for the documentation.")
    parser.add_argument("folder", type=Path, help="Where the pictures are written.")
    names = [picture.name for picture in (*PICTURES, *OF_DEAD_LETTERS)]
    parser.add_argument(
        "--only", metavar="NAME", nargs="+", choices=names, help="Names of the pictures to take. Default: all."
    )
    return parser


def main() -> None:
    arguments = parser().parse_args()
    folder: Path = arguments.folder
    wanted, later = (
        [each for each in pictures if arguments.only is None or each.name in arguments.only]
        for pictures in (PICTURES, OF_DEAD_LETTERS)
    )
    with working_folder() as temporary, sync_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        if path is None:
            sys.exit("There is no Chromium: run scripts/browser.py first.")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with application(temporary) as url:
            seed(url)
            add_rules(url)
            for picture in wanted:
                take(browser, url, picture, folder)
            if later:
                add_dead_letters(url)
            for picture in later:
                take(browser, url, picture, folder)
        browser.close()


if __name__ == "__main__":
    main()
