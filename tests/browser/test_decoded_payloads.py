"""Payloads that are decoded and masked, in a real Chromium: hostile ones too."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from support.application import Application
from support.dashboard import Dashboard
from support.foreign import avro
from support.pages import HOSTILE, SHOWN, assert_accessible, open_view
from support.registry import FakeRegistry

from light_scheduler.host.ports import free_port
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

HOOK = """
def decode(payload, headers, topic):
    if payload.startswith(b"hang"):
        while True:
            pass
    if payload.startswith(b"own:"):
        return {"topic": topic, "card": "4111", "said": payload[4:].decode()}
    return NotImplemented
"""

SCHEMA = {"type": "record", "name": "Paid", "fields": [{"name": "card", "type": "string"}]}
LARGE = 100_000


def payloads() -> dict[str, bytes]:
    """Return payloads by the id of their schedule."""
    return {
        "json": json.dumps({"card": "4111", "n": 12345678901234567890, "html": HOSTILE}, ensure_ascii=False).encode(),
        "own": f"own:<script>document.title = 1</script>{HOSTILE}".encode(),
        "avro": avro(SCHEMA, {"card": "4111"}, 7),
        "single": bytes.fromhex("c3018f5c393f1ad575720e"),
        "hang": b"hang",
        "broken": b'\xff\xfe{"card": "4111"}',
        "deep": b'{"card": "4111", "a": ' + b"[" * LARGE + b"]" * LARGE + b"}",
        "large": json.dumps({"card": "4111", "list": [{"card": "4111", "x": "y" * 80}] * 9_000}).encode(),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def decoding(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dashboard]:
    """Return an application that decodes and masks, with a schedule for each of `payloads`."""
    folder: Path = tmp_path_factory.mktemp("decoding")
    (folder / "hook_of_browser.py").write_text(HOOK)
    (folder / "int.avsc").write_text('"int"')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))))
        async with FakeRegistry({7: SCHEMA}).serve(free_port()) as registry, aiohttp.ClientSession() as session:
            application = await Application.create(
                kafka.bootstrap_servers,
                folder,
                payload_decoder="hook_of_browser:decode",
                payload_schemas=str(folder),
                masked_fields="card,authorization",
                schema_registry=registry,
            )
            with contextlib.closing(application):
                await application.start_worker()
                dashboard = Dashboard(application, session)
                target = {"topic": application.target, "headers": {"authorization": "secret", "kind": HOSTILE}}
                for id, payload in payloads().items():
                    body = {"base64": base64.b64encode(payload).decode()}
                    await dashboard.put("shop", id, payload=body, target=target)
                yield dashboard


@pytest_asyncio.fixture(loop_scope="session")
async def opened(decoding: Dashboard, page: Page) -> AsyncIterator[Dashboard]:
    """Show pages of that application."""
    yield decoding


async def show(page: Page, dashboard: Dashboard, id: str) -> None:
    """Open the page of a schedule."""
    await open_view(page, f"schedule?tenant=shop&id={id}", dashboard.worker.url)
    await expect(page.get_by_role("heading", name="Payload")).to_be_visible()


@pytest.mark.soak
async def test_payloads_are_shown_decoded_and_what_is_hostile_in_them_stays_text(opened: Dashboard, page: Page) -> None:
    shown = page.locator("pre")
    await show(page, opened, "json")
    await expect(shown).to_contain_text('"card": "********",\n  "n": 12345678901234567890')
    await expect(shown).to_contain_text(SHOWN.replace('"', '\\"'))
    await show(page, opened, "own")
    await expect(shown).to_contain_text('"card": "********"')
    await expect(shown).to_contain_text("<script>document.title = 1</script><img src=x")
    await expect(page.get_by_role("button", name="Decoded")).to_have_attribute("aria-pressed", "true")
    await show(page, opened, "avro")
    await expect(shown).to_have_text('{\n  "card": "********"\n}')
    await assert_accessible(page)
    await show(page, opened, "single")
    await expect(shown).to_have_text("7")
    await show(page, opened, "large")
    await expect(page.get_by_text("Characters 1 to 20,000 of")).to_be_visible()
    await expect(shown).not_to_contain_text("4111")
    assert await page.locator("main img, main script").count() == 0
    assert await page.title() == "Schedule · light-scheduler"


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("hang", "The payload decoder failed: it took longer than 2 s"),
        ("deep", "It could not be read as JSON: it is nested too deeply"),
        ("broken", "Fields are masked, and no decoder knows this payload."),
    ],
)
@pytest.mark.soak
async def test_a_payload_that_cannot_be_decoded_is_shown_to_a_writer_who_selects_it(
    opened: Dashboard, page: Page, id: str, reason: str
) -> None:
    await show(page, opened, id)
    await expect(page.get_by_text(reason)).to_be_visible()
    await expect(page.locator("pre")).to_have_count(0)
    await page.get_by_role("button", name="Hex").click()
    await expect(page.locator("pre")).to_contain_text("00000000  " + payloads()[id][:8].hex(" "))


@pytest.mark.soak
async def test_a_masked_header_is_shown_to_a_writer_who_asks(opened: Dashboard, page: Page) -> None:
    await show(page, opened, "json")
    headers = page.get_by_role("region", name="Headers")
    await expect(headers).to_contain_text("********")
    await expect(headers).to_contain_text(SHOWN)
    await headers.get_by_role("button", name="Show").click()
    await expect(headers).to_contain_text("secret")
    await page.get_by_role("button", name="Text").click()
    await expect(page.locator("pre")).to_contain_text("4111")


@pytest.mark.soak
async def test_a_reader_is_shown_what_is_not_masked_and_gets_no_more(opened: Dashboard, page: Page) -> None:
    token = await opened.new_token("auditor", "--role", "read", "--tenant", "shop")
    answers: list[str] = []

    async def keep(route: object) -> None:
        response = await route.fetch()  # type: ignore[attr-defined]
        answers.append(await response.text())
        await route.fulfill(response=response)  # type: ignore[attr-defined]

    await page.route("**/api/v1/tenants/**", keep)
    await page.goto(f"{opened.worker.url}/login")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("navigation")).to_be_visible()
    await show(page, opened, "json")
    await expect(page.locator("pre")).to_contain_text('"card": "********"')
    await expect(page.get_by_text("Fields are masked. Only a token with the role write")).to_be_visible()
    await expect(page.get_by_role("group", name="Form").get_by_role("button")).to_have_text(["JSON"])
    await expect(page.get_by_role("button", name="Show")).to_have_count(0)
    await assert_accessible(page)
    await show(page, opened, "broken")
    await expect(page.get_by_text("no decoder knows this payload. Only a token with the role write")).to_be_visible()
    await expect(page.locator("pre")).to_have_count(0)
    await page.unroute_all(behavior="wait")
    assert answers
    assert not any("4111" in answer or "secret" in answer for answer in answers)
