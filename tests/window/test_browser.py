"""The window in a real browser, by mouse and by keyboard: a paused follower, a produce that waits and expires."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import confluent_kafka
import pytest

import abeyant
from abeyant import broker, window
from pages.browser import NAMES, Page, browse, installed
from pages.legible import lasting_faults
from seeds import with_slow

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=f"no browser is installed (looked for {', '.join(NAMES)})")
SCRIPT = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
PRODUCE = "[...document.querySelectorAll('#rows tr:not(.gone)')].find(row => row.textContent.includes('Produce'))"
UNNAMED = """[...document.querySelectorAll('button, input, select, svg[role=img]')].filter(
    one => !(one.ariaLabel || one.labels?.length || one.textContent.trim()))"""

LINES = """() => [...document.querySelectorAll('button')].filter(one => one.plan).map(one => {
  one.dispatchEvent(new MouseEvent('mouseenter'));
  return [one.ariaLabel || one.textContent, find('code-python').textContent, find('code-curl').textContent];
})"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    assert PROGRAM is not None
    with browse(PROGRAM) as page:
        yield page


@pytest.fixture
def kafka() -> Iterator[broker.Cluster]:
    with broker.Cluster(brokers=3, clock="held") as cluster:
        cluster.create_topic("orders", replicas=3, config={"min.insync.replicas": 2})
        yield cluster


def click(page: Page, name: str) -> None:
    """Click the middle of the button of this name with the mouse."""
    button = f"[...document.querySelectorAll('button')].find(one => (one.ariaLabel || one.textContent) === {name!r})"
    page.wait_for(f"!!{button}", "document.body.innerText")
    page.run(f"{button}.scrollIntoView({{block: 'center'}})")
    place = page.run(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({button}.getBoundingClientRect())")
    page.point(*place)
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)


def press(page: Page, key: str, code: int, text: str = "") -> None:
    named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    page.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
    page.call("Input.dispatchKeyEvent", type="keyUp", **named)


def tab_to(page: Page, name: str) -> None:
    """Press the tab key until the button of this name has the focus."""
    for _ in range(80):
        press(page, "Tab", 9)
        if page.run("document.activeElement.ariaLabel || document.activeElement.textContent") == name:
            return
    raise AssertionError(f"the keyboard does not get to {name}")


def produce(bootstrap: str) -> tuple[threading.Thread, list[Any]]:
    """Send a record with acks=all and a time-out of 5 s on the cluster's clock; return what it ended with."""
    ended: list[Any] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "client.id": "checkout", "request.timeout.ms": 5000, "retries": 0}
    )
    producer.produce("orders", b"waits", on_delivery=lambda error, _: ended.append(error))
    thread = threading.Thread(target=producer.flush, args=(60,))
    thread.start()
    return thread, ended


@contextlib.contextmanager
def command() -> Iterator[dict[str, str]]:
    """`abeyant broker --window`, and what its first line says."""
    line = "--brokers 3 --port 0 --window --clock held --topic orders:1:3 --set min.insync.replicas=2 --json"
    with subprocess.Popen(
        [sys.executable, "-m", "abeyant", "broker", *line.split()], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("by", with_slow(["mouse", "keyboard"], ["mouse"]))
def test_a_produce_waits_and_expires(page: Page, by: str) -> None:
    def do(name: str) -> None:
        if by == "mouse":
            click(page, name)
        else:
            tab_to(page, name)
            press(page, "Enter", 13, "\r")

    page.visit("about:blank")  # the last test's window has closed
    page.forget()
    with command() as told:
        url = told["window"]
        page.show(1280, 900)
        page.visit(url)
        page.wait_for("document.querySelector('#live').className === 'live'")
        do("pause broker 2")
        page.wait_for("document.querySelector('#broker-list').textContent.includes('paused')")
        page.wait_for("document.querySelector('#said').textContent.includes('state paused')")
        thread, ended = produce(told["bootstrap.servers"])
        row = page.wait_for(f"({PRODUCE} || {{}}).innerText", "document.querySelector('#rows').innerText")
        assert row.startswith("5 s")
        assert "orders-0" in row
        assert "high watermark of orders-0 at 1, now 0 (broker 2 at 0)" in row
        if by == "keyboard":
            tab_to(page, "To the next expiration")
            assert page.run("find('code-python').textContent") == "kafka.clock.advance_to_next()"
        for _ in range(100):
            if ended:
                break
            if by == "mouse":
                click(page, "To the next expiration")
            else:
                press(page, "Enter", 13, "\r")
            page.run("new Promise(done => setTimeout(done, 60))")
        thread.join(30)
        assert [error.name() for error in ended] == ["REQUEST_TIMED_OUT"]
        page.wait_for(f"!{PRODUCE}", "document.querySelector('#rows').innerText")
        assert get(f"{url}clock")["now"] >= 5
        do("resume broker 2")
        page.wait_for("!document.querySelector('#broker-list').textContent.includes('paused')")
        assert get(f"{url}topics/orders/records")["records"][0]["value"] == "waits"
        assert page.run("document.title") != "owned"
        assert [one for one in page.requests if not one.startswith((url, "data:"))] == []
        assert page.complaints == []


@pytest.mark.parametrize("width", with_slow([1280, 400], [1280]))
@pytest.mark.parametrize("scheme", with_slow(["light", "dark"], ["light"]))
def test_it_can_be_read(page: Page, kafka: broker.Cluster, width: int, scheme: str) -> None:
    purgatory = abeyant.Purgatory[Any]("requests", abeyant.ManualTimer())

    class Named(abeyant.DelayedOperation):
        def try_complete(self) -> bool:
            return False

    purgatory.try_complete_else_watch(Named(30), [SCRIPT])
    kafka.fail("Fetch", error="UNKNOWN_SERVER_ERROR", client_id=SCRIPT)
    kafka.stop(3)
    page.visit("about:blank")  # the last test's window has closed
    page.forget()
    with window.serve(kafka, purgatory) as view:
        page.show(width, 900, scheme)
        page.visit(view.url)
        page.wait_for("document.querySelectorAll('#rows tr').length > 0", "document.body.innerText")
        page.run("for (const one of [find('code'), document.querySelector('header')]) one.style.position = 'static'")
        assert lasting_faults(page) == []  # but for what scrolls below the bars
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("document.title") != "owned"
        assert page.complaints == []
        assert page.run(f"{UNNAMED}.map(one => one.outerHTML)") == []


class Asked(abeyant.DelayedOperation):
    """A request of a client."""

    def __init__(self, client_id: str) -> None:
        super().__init__(30)
        self.client_id = client_id

    def try_complete(self) -> bool:
        return False


@pytest.mark.parametrize("width", with_slow([1280, 400], [400]))
def test_the_requests_of_a_client_are_a_line_each(page: Page, width: int) -> None:
    """A long name is cut, whole in its title, and whole on the page at the press of a button."""
    long = "settlement-service-" + "7c9f6d5b8-" * 20
    purgatory = abeyant.Purgatory[Asked]("requests", abeyant.ManualTimer())
    for client in ("checkout", "billing-1", long, long):
        purgatory.try_complete_else_watch(Asked(client), [f"orders-{client}"])
    page.visit("about:blank")  # the last test's window has closed
    page.forget()
    with window.serve(purgatory) as view:
        page.show(width, 900)
        page.visit(view.url)
        clients = page.wait_for("find('client').length > 1 && [...find('client').options].map(one => one.textContent)")
        assert clients == ["all clients (4)", f"{long} (2)", "checkout (1)", "billing-1 (1)"]
        heights = "[...new Set([...document.querySelectorAll('#rows tr')].map(one => one.offsetHeight))]"
        page.wait_for("document.querySelectorAll('#rows tr').length === 4")
        [height] = page.run(heights)
        page.run("find('client').selectedIndex = 1; find('client').dispatchEvent(new Event('change'))")
        page.wait_for("document.querySelectorAll('#rows tr').length === 2", "document.body.innerText")
        cells = page.run("[...document.querySelectorAll('#rows .client')].map(one => [one.textContent, one.title])")
        assert cells == [[long, long]] * 2
        cut = page.run("(one => one.scrollWidth > one.clientWidth)(document.querySelector('#rows .client'))")
        assert cut, "the name has room"
        click(page, "Whole names")
        assert min(page.run(heights)) > height
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.complaints == []


def test_every_button_is_a_line_of_python_and_of_curl(page: Page, kafka: broker.Cluster, tmp_path: Path) -> None:
    """W5: both lines, run as they stand, do what the button does."""
    page.visit("about:blank")  # the last test's window has closed
    page.forget()
    with window.serve(kafka) as view:
        page.show(1280, 900)
        page.visit(view.url)
        page.wait_for("!!document.querySelector('#broker-list button')")
        buttons = page.run(f"({LINES})()")
        lines = {name: (python, curl) for name, python, curl in buttons}
        assert {"pause broker 1", "stop broker 3", "To the next expiration", "Advance by", "Go on"} <= lines.keys()
        exec(lines["Advance by"][0], {"kafka": kafka})
        assert kafka.clock.now() == 1.0
        exec(lines["pause broker 1"][0], {"kafka": kafka})
        assert kafka.brokers[1].paused
        exec(lines["Go on"][0], {"kafka": kafka})
        assert kafka.clock.runs
        kafka.clock.hold()
        began = kafka.clock.now()
        page.run("find('fault-do').value = 'drop'; find('fault-topic').value = 'orders'; find('fault-nth').value = '2'")
        click(page, "Add")
        page.wait_for("document.querySelector('#fault-list').textContent.includes('orders')", "find('said').innerText")
        assert page.run("find('code-python').textContent") == 'kafka.drop("Produce", topic="orders", nth=2)'
        [fault] = kafka.faults()
        assert (fault.nth, fault.target.chosen()) == (2, {"api": "Produce", "topic": "orders"})
        exec(
            {name: python for name, python, _ in page.run(f"({LINES})()")}[f"End {repr(fault)[8:-1]}"], {"kafka": kafka}
        )
        assert kafka.faults() == []
        if which("curl") is None:
            pytest.skip("no curl on this machine")
        for name in ("Advance by", "pause broker 2"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([*shlex.split(lines[name][1]), "-s", "-f"], check=True, capture_output=True, timeout=30)
        assert kafka.clock.now() == began + 1
        assert kafka.brokers[2].paused
