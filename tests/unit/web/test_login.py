"""The page where browsers log in, and what their cookies are good for."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlencode

import pytest
from yarl import URL

from light_scheduler.access import AccessBook, Identity, Role
from light_scheduler.model import Requester
from light_scheduler.web.access.failed_logins import MOST_OF_ADDRESS, MOST_OF_ALL, MOST_OF_TOKEN, WINDOW_MS, Attempts
from light_scheduler.web.access.sessions import COOKIE, MOST_COOKIE_BYTES, login_page
from light_scheduler.web.forms.problems import RETRY_AFTER_S

NOW = 1_800_000_000_000
LIST = "/api/v1/tenants/default/schedules"


@pytest.fixture
async def token(cluster: Any, workers: Any) -> str:
    text: str = await cluster.token("write", "default", name="shop")
    return text


async def log_in(worker: Any, text: str, **headers: str) -> Any:
    body = urlencode({"token": text})
    async with worker.client.post("/login", data=body, headers=headers, allow_redirects=False) as response:
        await response.read()
        return response


async def ask(worker: Any, method: str, path: str, **headers: str) -> int:
    async with worker.client.request(method, path, headers=headers) as response:
        return int(response.status)


async def test_a_token_becomes_a_cookie_that_every_worker_accepts(workers: Any, token: str) -> None:
    response = await log_in(workers[0], f" {token}\n")
    assert (response.status, response.headers["Location"]) == (303, "/")
    header = response.headers["Set-Cookie"]
    assert "HttpOnly" in header
    assert "SameSite=Strict" in header
    assert "Path=/" in header
    assert "Max-Age" not in header, "it ends with the browser"
    cookie = f"{COOKIE}={response.cookies[COOKIE].value}"
    for worker in workers:
        worker.client.session.cookie_jar.clear()
        assert await ask(worker, "GET", LIST, Cookie=cookie) == 200
        assert await ask(worker, "GET", "/", Cookie=cookie) == 200
        assert await ask(worker, "GET", "/info", Cookie=cookie) == 403
        assert await ask(worker, "GET", LIST) == 401
    await workers[0].access.store.revoke(token.split("_")[1], by=Requester("test", ""))
    assert await ask(workers[0], "GET", LIST, Cookie=cookie) == 401


@pytest.mark.parametrize(
    ("name", "value", "is_secure"),
    [
        ("Origin", "https://{}", True),
        ("Origin", "http://{}", False),
        ("Referer", "https://{}/login", True),
        ("Referer", "http://{}/login?https://", False),
        ("X-Forwarded-Proto", "https", False),
    ],
)
async def test_a_cookie_is_secure_where_the_browser_reached_a_proxy_over_tls(
    workers: Any, token: str, name: str, value: str, is_secure: bool
) -> None:
    client = workers[0].client
    headers = {name: value.format(f"{client.host}:{client.port}"), "Sec-Fetch-Site": "same-origin"}
    response = await log_in(workers[0], token, **headers)
    assert response.status == 303
    assert ("Secure" in response.headers["Set-Cookie"]) == is_secure
    async with client.post("/logout", headers=headers, allow_redirects=False) as left:
        assert ("Secure" in left.headers["Set-Cookie"]) == is_secure


async def test_a_wrong_token_sets_no_cookie_and_is_not_shown_or_logged(
    workers: Any, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with workers[0].client.post("/login", data=urlencode({"token": token + "x"})) as response:
        text = await response.text()
        assert response.status == 401
        assert "Set-Cookie" not in response.headers
    assert "is not a token of this application" in text
    assert token not in text + caplog.text
    for body in (b"", b"token=", b"\xff", b"token=" + b"a" * 100_000):
        async with workers[0].client.post("/login", data=body) as response:
            assert response.status == 401


async def test_a_worker_that_has_not_read_the_tokens_yet_neither_refuses_nor_counts_a_login(
    cluster: Any, workers: Any, token: str
) -> None:
    store = workers[0].access.store
    read, store.book = store.book, AccessBook()
    cluster.tenants.is_loaded = False
    for _ in range(MOST_OF_TOKEN + 1):
        response = await log_in(workers[0], token)
        assert (response.status, response.headers.get("Retry-After")) == (503, str(RETRY_AFTER_S))
        assert "This worker has not read the tokens from Kafka yet. Try again later." in await response.text()
    store.book, cluster.tenants.is_loaded = read, True
    assert (await log_in(workers[0], token)).status == 303
    assert (await log_in(workers[0], token + "x")).status == 401


async def test_a_cookie_changes_something_only_from_a_page_of_the_worker(workers: Any, token: str) -> None:
    worker = workers[0]
    cookie, path = f"{COOKIE}={token}", f"{LIST}/a/trigger"
    own = f"http://{worker.client.host}:{worker.client.port}"
    assert await ask(worker, "POST", path, Cookie=cookie) == 403
    assert await ask(worker, "POST", path, Cookie=cookie, Origin="http://evil.example") == 403
    assert await ask(worker, "POST", path, Cookie=cookie, Origin="null") == 403
    assert await ask(worker, "POST", path, Cookie=cookie, Origin=own.replace("http", "https")) == 403
    assert await ask(worker, "POST", path, Cookie=cookie, **{"Sec-Fetch-Site": "same-site"}) == 403
    assert await ask(worker, "POST", path, Cookie=cookie, **{"Sec-Fetch-Site": "none"}) == 403
    assert worker.commands.seen == []
    assert await ask(worker, "POST", path, Cookie=cookie, Origin=own) == 404
    assert await ask(worker, "POST", path, Cookie=cookie, **{"Sec-Fetch-Site": "same-origin"}) == 404
    behind_proxy = {"Origin": own.replace("http", "https"), "Sec-Fetch-Site": "same-origin"}
    assert await ask(worker, "POST", path, Cookie=cookie, **behind_proxy) == 404
    assert await ask(worker, "POST", path, Cookie=cookie, Authorization=f"Bearer {token}") == 404


async def test_the_page_cannot_be_framed_runs_no_script_and_sends_its_form_here_only(workers: Any, token: str) -> None:
    async with workers[0].client.get("/login") as response:
        text = await response.text()
        policy = response.headers["Content-Security-Policy"]
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "same-origin", "else browsers send its form with `Origin: null`"
    assert policy == "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    assert "<script" not in text
    assert "Log out" not in text
    async with workers[0].client.get("/login", headers={"Cookie": f"{COOKIE}=x"}) as response:
        assert "Log out" in await response.text()


async def test_logging_out_ends_the_cookie(workers: Any) -> None:
    async with workers[0].client.post("/logout", allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/login")
        assert f'{COOKIE}=""; ' in response.headers["Set-Cookie"]
        assert "Max-Age=0" in response.headers["Set-Cookie"]
    headers = {"Origin": "http://evil.example"}
    async with workers[0].client.post("/logout", headers=headers, allow_redirects=False) as response:
        assert response.status == 403


async def test_logins_that_fail_are_limited_in_rate_and_a_valid_token_is_let_in(
    cluster: Any, workers: Any, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
    for _ in range(MOST_OF_TOKEN):
        assert (await log_in(workers[0], wrong)).status == 401
    refused = await log_in(workers[0], wrong)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    for number in range(MOST_OF_ALL):
        last = await log_in(workers[0], f"nonsense-{number}")
    assert last.status == 429
    assert caplog.text.count("a login from") == MOST_OF_ADDRESS
    assert (await log_in(workers[0], token)).status == 303
    cluster.clock.advance(WINDOW_MS)
    assert (await log_in(workers[0], wrong)).status == 401


def test_one_token_one_address_and_all_together_have_their_limits() -> None:
    attempts = Attempts()
    assert [attempts.failed(NOW, "a", "t") for _ in range(MOST_OF_TOKEN + 1)] == [True] * MOST_OF_TOKEN + [False]
    assert attempts.failed(NOW, "b", "t")
    left = MOST_OF_ADDRESS - MOST_OF_TOKEN
    assert [attempts.failed(NOW, "a", f"{number}") for number in range(left + 1)] == [True] * left + [False]
    left = MOST_OF_ALL - MOST_OF_ADDRESS - 1
    assert all(attempts.failed(NOW, f"192.0.2.{number}", "t") for number in range(left))
    assert not attempts.failed(NOW + WINDOW_MS - 1, "c", "t")
    assert attempts.failed(NOW + WINDOW_MS, "c", "t")


class Accepting:
    """An identity provider that everybody is known to."""

    async def identity(self, text: str) -> Identity:
        return Identity("oidc:x", Role.READ)


async def test_a_token_that_no_browser_would_keep_is_refused_with_the_reason(workers: Any, token: str) -> None:
    worker = workers[0]
    worker.access.oidc = Accepting()
    longest = MOST_COOKIE_BYTES - len(COOKIE) - 1
    accepted = await log_in(worker, "x" * longest)
    assert accepted.status == 303
    assert len(accepted.headers["Set-Cookie"]) < 4_096
    async with worker.client.post("/login", data=urlencode({"token": "x" * (longest + 1)})) as response:
        assert (response.status, "Set-Cookie" in response.headers) == (400, False)
        assert f"it has {longest + 1} characters" in await response.text()


@pytest.mark.parametrize("path", ["/", "/info", f"{LIST}?sort=due&label=a%3Db", "/?a"])
async def test_a_browser_comes_to_the_page_that_it_asked_for(workers: Any, token: str, path: str) -> None:
    client = workers[0].client
    async with client.get(URL(path, encoded=True), headers=HTML, allow_redirects=False) as response:
        assert response.status == 303
        place = URL(response.headers["Location"], encoded=True)
    async with client.get(place) as response:
        assert '<form method="post">' in await response.text(), "it goes to this address, with the fragment"
    async with client.post(place, data=urlencode({"token": token}), allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, path)


@pytest.mark.parametrize(
    "text",
    [
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "evil",
        "",
        "/a\r\nSet-Cookie: a=b",
        "/é",
        "/" + "a" * 3_000,
    ],
)
async def test_a_browser_is_sent_to_no_other_host(workers: Any, token: str, text: str) -> None:
    body, query = urlencode({"token": token}), urlencode({"next": text})
    place = URL(f"/login?{query}", encoded=True)
    async with workers[0].client.post(place, data=body, allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/")
    assert login_page(text) == "/login"


HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/info", LIST, "/nowhere"])
async def test_a_browser_without_a_valid_token_is_sent_to_the_page(workers: Any, token: str, path: str) -> None:
    for headers in (HTML, {**HTML, "Sec-Fetch-Mode": "navigate"}, {**HTML, "Cookie": f"{COOKIE}={token}x"}):
        async with workers[0].client.get(path, headers=headers, allow_redirects=False) as response:
            expected = "/login" if path == "/" else f"/login?{urlencode({'next': path})}"
            assert (response.status, response.headers["Location"]) == (303, expected)
            assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [{}, {"Accept": "*/*"}, {**HTML, "Authorization": "Bearer x"}, {**HTML, "Sec-Fetch-Mode": "cors"}],
)
async def test_programs_and_scripts_without_a_valid_token_get_a_problem(
    workers: Any, token: str, headers: dict[str, str]
) -> None:
    async with workers[0].client.get("/", headers=headers, allow_redirects=False) as response:
        assert (response.status, response.content_type) == (401, "application/problem+json")


async def test_a_browser_that_may_not_do_something_is_told_so(workers: Any, token: str) -> None:
    assert await ask(workers[0], "GET", "/info", Cookie=f"{COOKIE}={token}", **HTML) == 403
    assert await ask(workers[0], "POST", f"{LIST}/a/trigger", **HTML) == 401
