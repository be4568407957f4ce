"""The dashboard in a real Chromium, served by a real worker."""

from __future__ import annotations

import asyncio
import base64
import re
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from playwright.async_api import Page, Route, expect
from support.dashboard import Dashboard
from support.pages import (
    HOSTILE,
    SHOWN,
    answer_with,
    assert_accessible,
    confirm,
    go_back,
    open_view,
    refuse_streams,
    set_hidden,
)
from support.waiting import eventually

from light_scheduler.model import DeadLetter, DeadLetterCause
from light_scheduler.wire import encode_dead_letter
from light_scheduler.wire.events import SCHEDULE_KEY_TOO_LARGE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


async def test_the_overview_and_the_partitions_say_how_the_cluster_is(dashboard: Dashboard, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_text("1 worker, 4 partitions: all running.")).to_be_visible()
    await expect(page.get_by_text("All target topics are available.")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("link", name="Partitions").click()
    await expect(page.get_by_role("row")).to_have_count(5)
    await assert_accessible(page)


async def test_what_is_missing_or_restoring_is_named(dashboard: Dashboard, page: Page) -> None:
    state = await dashboard.worker.get("/api/v1/cluster")
    (worker,) = state["workers"]
    (topic,) = worker["partitions"]
    lane, target = worker["info"]["lanes"][0], {"topic": "orders", "partitions": [], "unavailable_since": 0}
    lane["state"], lane["restore"] = "restoring", {"done": 45, "total": 100, "per_s": 9, "seconds_left": 6}
    worker["info"]["targets"] = [{**target, "waiting": 7, "reason": "it has no leader"}]
    gone = {"url": "http://gone:1", "partitions": {topic: [4]}, "info": None, "reason": "did not answer in time"}
    state["workers"].append(gone)
    state["unowned"] = [{"topic": topic, "partition": 5}]
    await refuse_streams(page)
    uncounted, probed = worker["info"]["lanes"][1:3]
    probed["probe"] = {
        "successes": 3,
        "failures": 1,
        "last_success": 1_000,
        "latency_ms": 12,
        "last_failure": 2_000,
        "reason": "no transaction stored the probe within 30 s",
    }
    overview = await dashboard.worker.get("/api/v1/overview")
    lacking = {"topic": topic, "partition": uncounted["partition"], "worker": worker["url"]}
    overview |= {"complete": False, "missing": [{**lacking, "reason": "is not running, or waits for a commit"}]}
    overview["tenants"] = [{"tenant": "counted", "pending": 5}]
    await answer_with(page, "/api/v1/cluster", state)
    await answer_with(page, "/api/v1/overview", overview)
    await page.goto("/")
    notice = page.get_by_role("status")
    missing = f"Worker http://gone:1 did not answer in time. Its partitions are not shown: {topic}[4]"
    await expect(notice).to_contain_text(missing)
    restoring = f"{topic}[{lane['partition']}] is restoring on {worker['url']} (45 % of 100, 6 s left)"
    await expect(notice).to_contain_text(restoring)
    await expect(notice).to_contain_text(f"{topic}[5] is unowned")
    await expect(notice).to_contain_text(f"{topic}[{uncounted['partition']}] is not in the counts")
    await expect(page.get_by_text("Incomplete: a partition has more tenants and topics")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="orders")).to_contain_text("it has no leader")
    await assert_accessible(page)
    await page.get_by_role("link", name="Partitions").click()
    await expect(page.get_by_role("row")).to_have_count(7)
    await expect(page.get_by_role("progressbar")).to_have_attribute("value", "45")
    row = page.get_by_role("row").filter(has_text=f"{topic}[{probed['partition']}]")
    await expect(row).to_contain_text("no transaction stored the probe within 30 s")


async def test_a_hidden_page_asks_nothing_until_it_is_seen(dashboard: Dashboard, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/cluster") else None)
    await refuse_streams(page)
    await page.clock.install()
    await page.goto("/")
    await eventually(lambda: len(asked) > 1, what="a second request")
    await set_hidden(page, True)
    await page.wait_for_load_state("networkidle")
    count = len(asked)
    await page.clock.run_for(60_000)
    await page.wait_for_load_state("networkidle")
    assert len(asked) == count
    await set_hidden(page, False)
    await eventually(lambda: len(asked) > count, what="a request of the visible page")


@pytest.mark.soak
async def test_the_overview_comes_over_one_stream_that_a_hidden_page_closes(dashboard: Dashboard, page: Page) -> None:
    asked: list[str] = []
    ended: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/v1/")[2].partition("?")[0]))
    for event in ("requestfailed", "requestfinished"):
        page.on(event, lambda request: ended.append(request.url) if "/events?" in request.url else None)
    await page.goto("/")
    tenant = page.get_by_role("row").filter(has_text="streamed")
    await expect(page.get_by_text("1 worker, 4 partitions: all running.")).to_be_visible()
    for number in (1, 2):
        await dashboard.put("streamed", f"s-{number}")
        await expect(tenant).to_contain_text(str(number))
    assert (asked.count("events"), asked.count("overview"), asked.count("cluster"), ended) == (1, 0, 0, [])
    await set_hidden(page, True)
    await eventually(lambda: len(ended) == 1, what="the end of the stream")
    await set_hidden(page, False)
    await eventually(lambda: asked.count("events") == 2, what="a stream of the visible page")
    await tenant.get_by_role("link").click()
    await expect(page.get_by_role("row").filter(has_text="s-2")).to_be_visible()


@pytest.mark.soak
@pytest.mark.every_case
async def test_figures_of_a_worker_that_does_not_answer_stay_and_say_how_old_they_are(
    dashboard: Dashboard, page: Page
) -> None:
    """The connection is what is cut: the worker that serves the other tests goes on."""
    await refuse_streams(page)
    await page.goto("/")
    running = page.get_by_text("1 worker, 4 partitions: all running.")
    age = page.get_by_text("Last figures:")
    await expect(running).to_be_visible()
    await page.context.set_offline(True)
    await expect(age).to_be_visible()
    await expect(running).to_be_visible()
    await expect(age.locator("time").first).to_have_attribute("title", re.compile(r"UTC|Z$"))
    await page.context.set_offline(False)
    await expect(age).to_have_count(0)


async def test_the_explorer_keeps_its_filters_in_the_address(dashboard: Dashboard, page: Page) -> None:
    for number in range(60):
        await dashboard.put("shop", f"order-{number:02}", labels={"team": "billing" if number % 2 else "sales"})
    await open_view(page, "schedules?tenant=shop&sort=id")
    rows = page.get_by_role("row")
    await expect(rows).to_have_count(51)
    await page.get_by_role("link", name="Next page").click()
    await expect(rows).to_have_count(11)
    await page.get_by_label("Labels").fill("team=billing")
    await page.get_by_label("Id begins with").fill("order-5")
    await page.get_by_label("Due from").fill("+1h")
    await page.keyboard.press("Enter")
    await expect(rows).to_have_count(6)
    assert "label=team%3Dbilling" in page.url
    await assert_accessible(page)
    await page.get_by_label("Due from").fill("soon")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("is no instant")
    await go_back(page)
    await expect(rows).to_have_count(6)
    await open_view(page, "schedules?tenant=shop&id_contains=der-5&label=team%3Dsales")
    await expect(rows.filter(has_text="team=sales")).to_have_count(5)
    await open_view(page, "schedules?tenant=shop&id_contains=der-5&label=team%3Dbilling")
    await expect(rows.filter(has_text="team=billing")).to_have_count(5)
    await expect(rows).to_have_count(6)
    await expect(page.get_by_role("columnheader", name="Next due")).to_have_attribute("aria-sort", "ascending")
    await page.get_by_role("columnheader", name="Id").get_by_role("link").click()
    await expect(page.get_by_role("columnheader", name="Id")).to_have_attribute("aria-sort", "ascending")
    assert "id_contains=der-5" in page.url
    assert "sort=id" in page.url
    await assert_accessible(page)
    await open_view(page, "schedules?tenant=shop&label_contains=m%3Dbil&id_contains=der-5")
    await expect(rows).to_have_count(6)
    await expect(page.get_by_label("Label contains")).to_have_value("m=bil")
    await page.get_by_label("Partition").fill("x[0]y")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text(
        "partition: must be a commands topic and the number of a partition in brackets, "
        "such as light-scheduler-commands[3], not 'x[0]y'"
    )
    await go_back(page)
    await page.get_by_role("link", name="order-51").click()
    await page.get_by_role("button", name="Explain").click()
    why = page.get_by_role("region", name="Why")
    await expect(why.get_by_role("listitem").first).to_contain_text("ccepted")
    await expect(why.get_by_role("alert")).to_have_count(0)
    await assert_accessible(page)
    await expect(page.get_by_role("region", name="History")).to_contain_text("scheduled")
    await page.get_by_role("button", name="Look further back").click()
    await expect(page.get_by_text("Searched back to the beginning.")).to_be_visible()
    await expect(page.get_by_role("region", name="History")).to_contain_text("scheduled")


async def test_relative_times_go_on(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("shop", "aging")
    await open_view(page, "schedule?tenant=shop&id=aging")
    accepted = page.get_by_role("definition").filter(has_text="ago").locator("time").first
    before = await accepted.inner_text()
    await expect(accepted).not_to_have_text(before)


@pytest.mark.soak
async def test_what_is_ahead_opens_from_days_to_minutes_to_schedules(dashboard: Dashboard, page: Page) -> None:
    due = 2_000_000_040_000  # 2033-05-18 03:34 UTC
    for number in range(3):
        await dashboard.put("ahead", f"at-once-{number}", trigger={"at": due + number})
    await dashboard.put("ahead", "later", trigger={"at": due + 3_600_000})
    await open_view(page, f"upcoming?tenant=ahead&by=day&from={due - 86_400_000}")
    await page.get_by_label("Times").select_option("utc")
    await expect(page.get_by_text("4 schedules due from 2033-05-17 00:00 UTC")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text=dashboard.application.target)).to_contain_text("4")
    await expect(page.locator("svg .tick")).to_contain_text(["0", "4", "05-17"])
    await assert_accessible(page)
    await page.get_by_role("link", name="2033-05-18 00:00 UTC: 4 schedules").press("Enter")
    bars = page.get_by_role("group", name="Schedules ahead").get_by_role("link")
    await expect(bars).to_have_count(2)
    await bars.first.press("Enter")
    await expect(bars).to_have_count(1)
    await expect(bars).to_have_attribute("aria-label", "2033-05-18 03:34 UTC: 3 schedules")
    await bars.press("Enter")
    await expect(page.get_by_role("row")).to_have_count(4)
    assert "due_from=2000000040000&due_to=2000000100000" in page.url
    await go_back(page)
    await page.get_by_role("link", name="Later").click()
    await expect(page.get_by_text("1 schedule due")).to_be_visible()
    await open_view(page, "upcoming?tenant=nobody")
    await expect(page.get_by_text("Nothing is due in this time.")).to_be_visible()
    await assert_accessible(page)


@pytest.mark.soak
async def test_what_is_ahead_is_of_all_tenants_a_target_or_a_partition(dashboard: Dashboard, page: Page) -> None:
    due = 2_100_000_000_000  # 2036-07-18 13:20 UTC
    for tenant in ("north", "north", "south"):
        await dashboard.put(tenant, f"far-{uuid4()}", trigger={"at": due})
    target, topic = dashboard.application.target, dashboard.application.settings.topics.commands
    await open_view(page, f"upcoming?by=hour&from={due}")
    await page.get_by_label("Times").select_option("utc")
    await expect(page.get_by_text("3 schedules due from 2036-07-18 13:00 UTC")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="north")).to_contain_text("2")
    await assert_accessible(page)
    await open_view(page, f"upcoming?group=partition&by=hour&from={due}")
    await expect(page.get_by_label("Group by")).to_have_value("partition")
    partitions = page.get_by_role("row").filter(has_text=f"{topic}[")
    await expect(partitions).not_to_have_count(0)
    name = await partitions.get_by_role("link").first.inner_text()
    await partitions.get_by_role("link").first.click()
    await expect(page.get_by_text(f"Only partition {name}.")).to_be_visible()
    await assert_accessible(page)
    tenants = page.get_by_role("row").get_by_role("link")
    counted = await page.get_by_role("row").nth(1).get_by_role("cell").nth(1).inner_text()
    await tenants.first.click()
    await expect(page.get_by_label("Partition")).to_have_value(name)
    await expect(page.get_by_role("row")).to_have_count(1 + int(counted))
    await open_view(page, f"upcoming?group=target&partition={quote(name, safe='')}&by=hour&from={due}")
    await page.get_by_role("row").filter(has_text=target).get_by_role("link").click()
    await expect(page.get_by_text(f"Only target topic {target}, partition {name}.")).to_be_visible()
    await open_view(page, f"upcoming?group=target&by=hour&from={due}")
    await page.get_by_role("row").filter(has_text=target).get_by_role("link").click()
    await expect(page.get_by_text(f"Only target topic {target}")).to_be_visible()
    bars = page.get_by_role("group", name="Schedules ahead").get_by_role("link")
    await expect(bars).to_have_attribute("aria-label", "2036-07-18 13:00 UTC: 3 schedules")
    await bars.press("Enter")
    await expect(page.get_by_label("Intervals")).to_have_value("minute")
    await expect(bars).to_have_attribute("aria-label", "2036-07-18 13:20 UTC: 3 schedules")
    await bars.press("Enter")
    await expect(page.get_by_text("3 schedules due from 2036-07-18 13:20 UTC to 2036-07-18 13:21 UTC")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("row").filter(has_text="south").get_by_role("link").click()
    await expect(page.get_by_role("row")).to_have_count(2)
    assert f"target_topic={target}" in page.url
    await open_view(page, "overview")
    road = page.locator("section").filter(has=page.get_by_role("heading", name="Due next"))
    for of in (f"target:{target}", f"partition:{topic}[0]", "all"):
        kind, _, name = of.partition(":")
        asked = urlencode({"target_topic" if kind == "target" else kind: name}) if name else "group=tenant&top=0&by="
        async with page.expect_response(re.compile(re.escape(asked))) as answered:
            await road.get_by_role("combobox", name="For", exact=True).select_option(of)
        assert (await answered.value).ok
        part = f"{kind}={quote(name, safe='')}&" if name else ""
        await expect(road.get_by_role("link", name="Details")).to_have_attribute("href", f"#/upcoming?{part}by=hour")
        await expect(road.get_by_role("alert")).to_have_count(0)


@pytest.mark.soak
async def test_admins_see_the_configuration_and_run_checks(dashboard: Dashboard, page: Page) -> None:
    await open_view(page, "health")
    await page.get_by_role("link", name="Configuration").click()
    row = page.get_by_role("row").filter(has=page.get_by_text("app_id", exact=True))
    await expect(row).to_contain_text(dashboard.application.settings.app_id)
    await expect(row).to_contain_text("environment")
    await page.get_by_label("Name contains").fill("web_port")
    await expect(page.get_by_role("row")).to_have_count(2)
    await assert_accessible(page)
    await page.get_by_role("main").get_by_role("link", name="Health").click()
    await page.get_by_role("button", name="Run checks").click()
    checks = page.get_by_role("region", name="What the checks found")
    await expect(checks.get_by_role("row").filter(has_text="broker").first).to_contain_text("ok", timeout=60_000)
    await assert_accessible(page)


async def test_those_who_are_no_admins_see_no_configuration(dashboard: Dashboard, page: Page) -> None:
    reader = {"name": "visitor", "role": "write", "tenants": None, "version": "1"}
    await answer_with(page, "/api/v1/identity", reader)
    await open_view(page, "health")
    await expect(page.get_by_text("light-scheduler doctor also checks")).to_be_visible()
    await expect(page.get_by_role("link", name="Configuration")).to_have_count(0)
    await expect(page.get_by_role("button", name="Run checks")).to_have_count(0)


async def test_what_users_write_stays_text(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put(
        "shop",
        f"z{HOSTILE}",
        labels={"x": HOSTILE},
        target={"topic": dashboard.application.target, "key": HOSTILE, "headers": {"h": HOSTILE}},
        payload={"text": f"<script>document.title = 1</script>{HOSTILE}\x00" + "x" * (1 << 19)},
    )
    await dashboard.put("shop", "z-broken", payload={"base64": base64.b64encode(b"\xff\xfe<b>").decode()})
    await open_view(page, "schedules?tenant=shop&id_prefix=z%3C")
    await page.get_by_role("link", name=SHOWN).click()
    payload = page.locator("pre")
    await expect(payload).to_contain_text(f"<script>document.title = 1</script>{SHOWN} U+0000xxx")
    await expect(page.get_by_text("Characters 1 to 20,000 of")).to_be_visible()
    await page.get_by_role("button", name="Show more").click()
    await page.get_by_role("button", name="Next part").click()
    await page.get_by_role("button", name="Next part").click()
    await expect(page.get_by_text("Characters 400,001 to 524,")).to_be_visible()
    await expect(page.get_by_role("button", name="Next part")).to_have_count(0)
    await page.get_by_role("button", name="Part before").click()
    await expect(page.get_by_text("Characters 200,001 to 400,000")).to_be_visible()
    await page.get_by_role("button", name="Hex").click()
    await expect(payload).to_contain_text("00000000  3c 73 63 72 69 70 74 3e")
    await expect(page.get_by_role("region", name="Headers")).to_contain_text(SHOWN)
    assert await page.locator("main img, main script, main b").count() == 0
    assert await page.title() == "Schedule · light-scheduler"
    await open_view(page, "schedule?tenant=shop&id=z-broken")
    await expect(payload).to_contain_text("00000000  ff fe 3c 62 3e")
    await page.get_by_role("button", name="Text").click()
    await expect(payload).to_contain_text("\ufffd\ufffd<b>")


async def test_a_schedule_is_made_changed_cancelled_and_made_again(dashboard: Dashboard, page: Page) -> None:
    await open_view(page, "new?tenant=shop")
    await page.get_by_label("Id (empty").fill("lunch")
    await page.get_by_label("Target topic").fill(dashboard.application.target)
    await page.get_by_label("Fires").select_option("cron")
    await page.get_by_label("Cron expression").fill("0 12 * * *")
    await page.get_by_label("Payload").fill('{"hungry": true}')
    await expect(page.locator(".preview li")).to_have_count(5)
    await assert_accessible(page)
    await page.get_by_role("button", name="Schedule").click()
    answers = page.locator(".notice")
    await expect(answers).to_contain_text("Scheduled: lunch")
    await page.get_by_role("link", name="Show it").click()
    await expect(page.get_by_role("listitem")).to_have_count(10)
    await expect(page.locator("pre")).to_contain_text('"hungry": true')

    await confirm(page, "Pause", "Pause")
    await expect(answers).to_contain_text("Paused: lunch")
    assert await dashboard.state("shop", "lunch") == "paused"
    await confirm(page, "Resume", "Resume")
    await expect(answers).to_contain_text("Resumed: lunch")
    await confirm(page, "Fire now", "Fire now")
    await expect(answers).to_contain_text("Triggered: lunch")

    await page.get_by_role("group", name="Actions").get_by_role("button", name="Reschedule").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("When").fill("")
    await dialog.get_by_role("button", name="Reschedule").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Enter when it fires")
    await dialog.get_by_label("When").fill("+3d")
    await dialog.get_by_role("button", name="Reschedule").click()
    await expect(answers).to_contain_text("Rescheduled: lunch")

    await page.get_by_role("group", name="Actions").get_by_role("button", name="Cancel").click()
    await page.keyboard.press("Escape")
    assert await dashboard.state("shop", "lunch") == "pending"
    await confirm(page, "Cancel", "Cancel schedule")
    await expect(answers).to_contain_text("Cancelled: lunch")
    await expect(page.get_by_text("It is not pending")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await expect(answers).to_contain_text("Scheduled: lunch")
    assert await dashboard.state("shop", "lunch") == "pending"


async def test_an_action_ends_the_search_of_the_history_from_before_it(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("shop", "slow-history")
    released, held = asyncio.Event(), list[Route]()

    async def hold_first(route: Route) -> None:
        held.append(route)
        if len(held) > 1:
            await route.continue_()
            return
        answer = await route.fetch()
        await released.wait()
        await route.fulfill(response=answer)

    await page.route("**/slow-history/history?*", hold_first)
    await open_view(page, "schedule?tenant=shop&id=slow-history")
    await expect(page.get_by_text("Searching the history…")).to_be_visible()
    await eventually(lambda: held, what="the request that is held")
    async with page.expect_event("requestfailed", lambda request: request == held[0].request):
        await confirm(page, "Pause", "Pause")
    history = page.get_by_role("region", name="History")
    await expect(history).to_contain_text("paused")
    released.set()
    await page.unroute_all(behavior="wait")
    await expect(history).to_contain_text("paused")


async def test_a_dead_letter_is_found_shown_and_sent_again(dashboard: Dashboard, page: Page) -> None:
    await dashboard.reject("shop", "too-late", payload={"text": HOSTILE})
    await open_view(page, "dead-letters?cause=rejected&id=too-late")
    rows = page.get_by_role("row")
    await expect(rows).to_have_count(2)
    await assert_accessible(page)
    await rows.get_by_role("link").click()
    await expect(page.get_by_text("Became a dead letter")).to_be_visible()
    await expect(page.locator("pre")).to_contain_text("too-late")
    await confirm(page, "Send it again", "Send again")
    await expect(page.locator(".notice")).to_contain_text("Sent again")
    await open_view(page, "dead-letters?id=nothing-of-this-id")
    await expect(page.get_by_text("No dead letters.")).to_be_visible()


async def test_a_dead_letter_without_the_key_of_its_schedule_says_so_and_cannot_be_sent_again(
    dashboard: Dashboard, page: Page
) -> None:
    application = dashboard.application
    (cause, firing) = (DeadLetterCause.REFUSED, ("lacking", "order", 1, 0, application.target, 0, 0))
    letter = DeadLetter(cause, "it was refused", None, *firing, key=b"k", value=b"whole", headers=[])
    key, value, headers = encode_dead_letter(letter, application.settings.topics.commands)
    async with AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers) as producer:
        topic = application.settings.topics.dead_letters
        await producer.send_and_wait(topic, value, key, headers=[*headers, SCHEDULE_KEY_TOO_LARGE])
    await open_view(page, "dead-letters?tenant=lacking")
    rows = page.get_by_role("row")
    await expect(rows.last).to_contain_text("Left out: key of the schedule")
    await expect(page.get_by_role("button", name="Send all 0 again")).to_be_disabled()
    await assert_accessible(page)
    await rows.get_by_role("link").first.click()
    await expect(page.get_by_text("So it cannot be sent again.")).to_be_visible()
    await expect(page.locator("pre")).to_contain_text("whole")
    await expect(page.get_by_role("button", name="Send it again")).to_have_count(0)
    await assert_accessible(page)


@pytest.mark.soak
async def test_an_application_without_delay_rules_says_so_and_its_health_is_shown(
    dashboard: Dashboard, page: Page
) -> None:
    await open_view(page, "delays")
    await expect(page.get_by_text("There are no delay rules.")).to_be_visible()
    await page.get_by_role("link", name="Health").click()
    await expect(page.get_by_role("row").filter(has_text=dashboard.worker.url)).to_contain_text("running")
    await assert_accessible(page)


async def test_a_reader_of_one_tenant_sees_its_schedules_and_no_actions(dashboard: Dashboard, page: Page) -> None:
    await dashboard.put("museum", "exhibit")
    reader = {"name": "visitor", "role": "read", "tenants": ["museum"], "version": "1"}
    await answer_with(page, "/api/v1/identity", reader)
    await page.goto("/")
    await expect(page.get_by_role("navigation").get_by_role("link", name="Overview")).to_have_count(0)
    await page.get_by_role("link", name="exhibit").click()
    await expect(page.get_by_text("Sequence", exact=True)).to_be_visible()
    await expect(page.get_by_role("group", name="Actions")).to_have_count(0)
    await expect(page.get_by_text("New schedule")).to_have_count(0)
