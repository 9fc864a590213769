"""The timeline of a failure: what it holds, and its page in a real browser, by keyboard, narrow and dark."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Options, RunId, RunResult, Simulation, rerun, run_seed
from abeyant.broker.simulation.search import passing_beside
from abeyant.broker.simulation.timeline import PARTS, first_difference, record_stories, timeline
from abeyant.broker.simulation.timeline_page import timeline_page
from broker.simulation.shrunk import shrunk
from pages.browser import Page, browse, installed
from pages.legible import lasting_faults

aiokafka = pytest.importorskip("aiokafka")

OPTIONS = Options(faults=("kill",), horizon=2.0, converge=15.0)
COMMAND = "pytest test_it.py::test_orders"


async def loses(simulation: Simulation) -> None:
    """A service that commits what it has not worked off; four orders, <b>named</b> to be escaped."""
    simulation.kafka.create_topic("orders", partitions=1, config={"min.insync.replicas": 2})
    done: list[bytes] = []

    async def service() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=simulation.bootstrap, group_id="work", enable_auto_commit=False,
            auto_offset_reset="earliest",
        )  # fmt: skip
        await consumer.start()
        while True:
            record = await consumer.getone()
            await consumer.commit()
            await asyncio.sleep(0.2)
            done.append(record.value)

    simulation.process(service)
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=simulation.bootstrap, acks="all")
    await producer.start()
    sent = [b"<b>%d</b>" % number for number in range(4)]
    for value in sent:
        await producer.send_and_wait("orders", value)
        await asyncio.sleep(0.3)
    await producer.stop()
    simulation.check(kafka_checks.each_effect_at_least_once(lambda: done, lambda: sent))


@pytest.fixture(scope="module")
def found() -> tuple[RunId, RunResult]:
    return shrunk(loses, OPTIONS)


@pytest.fixture(scope="module")
def watched(found: tuple[RunId, RunResult]) -> RunResult:
    return rerun(loses, found[0], OPTIONS, any_hashes=True, watch=True)


@pytest.fixture(scope="module")
def beside(found: tuple[RunId, RunResult]) -> tuple[RunId, RunResult]:
    other = passing_beside(loses, found[0], OPTIONS, any_hashes=True)
    assert other is not None
    return other


@pytest.mark.slow
def test_a_watched_run_is_the_same_run(found: tuple[RunId, RunResult], watched: RunResult) -> None:
    assert (watched.hash, watched.failure) == (found[1].hash, found[1].failure)
    assert found[1].watched is None


def test_it_has_programs_brokers_partitions_and_groups(watched: RunResult) -> None:
    run = timeline(watched)
    lanes = {(lane.part, lane.name): lane for lane in run.lanes}
    assert {part for part, _ in lanes} == set(PARTS) - {"Transactions"}
    kinds = {mark.kind for mark in lanes["Programs", "service"].marks}
    assert {"handed", "committed", "joined", "down"} <= kinds
    assert {mark.kind for mark in lanes["Programs", "the test"].marks} == {"acknowledged"}
    partition = lanes["Partitions", "orders-0"]
    assert [offset for _, offset in partition.high_watermark][-1] == 4
    assert all(high <= end for (_, high), (_, end) in zip(partition.high_watermark, partition.end, strict=True))
    assert any("Stable" in mark.about for mark in lanes["Groups", "work"].marks)
    waits = [mark for part, name in lanes if part == "Brokers" for mark in lanes[part, name].marks]
    assert any("JoinGroup of service waits" in mark.about for mark in waits)
    assert run.until <= watched.seconds * 1.01


def test_the_run_that_passes_is_the_same_up_to_the_fault(watched: RunResult, beside: tuple[RunId, RunResult]) -> None:
    assert beside[1].failure is None
    killed = next(event for event in watched.history.events if "is killed" in event.what)
    assert first_difference(timeline(watched), timeline(beside[1])) == pytest.approx(killed.at)
    assert first_difference(timeline(watched), timeline(watched)) == math.inf


def test_the_lost_record_is_followed(watched: RunResult) -> None:
    assert watched.failure is not None
    (steps,) = record_stories(watched.history, watched.failure.message).values()
    said = " / ".join(what for _, what in steps)
    before, _, after = said.partition("service is killed")
    assert "acknowledged at orders-0" in before
    assert "handed to service consumer" in before
    assert "past it" in before + after


def test_where_no_run_passes_the_page_says_so() -> None:
    async def wrong(simulation: Simulation) -> None:
        raise ValueError("of <the> test")

    options = Options(faults=(), converge=1.0)
    assert passing_beside(wrong, RunId(1), options, any_hashes=True) is None
    page = timeline_page(run_seed(wrong, 1, options, any_hashes=True, watch=True), RunId(1), None, COMMAND)
    assert "No run near it passes" in page
    assert "raise ValueError(&quot;of &lt;the&gt; test&quot;)" in page


@pytest.mark.slow
def test_the_page_in_a_browser(watched: RunResult, beside: tuple[RunId, RunResult], tmp_path: Path) -> None:
    path = tmp_path / "story.html"
    path.write_text(timeline_page(watched, RunId(watched.seed, (0,)), beside, COMMAND), encoding="utf-8")
    assert path.stat().st_size < 300_000  # it has no library in it
    assert "<b>0</b>" not in path.read_text(encoding="utf-8")
    browser = installed()
    if browser is None:
        return
    with browse(browser) as page:
        for scheme, width in (("light", 1100), ("dark", 400)):
            page.show(width=width, scheme=scheme)
            page.open(path)
            assert lasting_faults(page) == [], (scheme, width)
        _by_keyboard(page)
        assert set(page.requests) == {path.as_uri()}
        assert page.complaints == []


def _by_keyboard(page: Page) -> None:
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    focus = "document.activeElement.getAttribute('aria-label')"
    assert page.run("document.querySelectorAll('#chart [tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('#chart [tabindex=\"0\"]').focus()")
    assert "is killed" in page.run(focus)  # the fault that mattered is where the keyboard begins
    assert page.run("document.getElementById('about').textContent") == page.run(focus)
    _press(page, "Home")
    first = page.run(focus)
    _press(page, "ArrowRight")
    assert page.run(focus) != first
    _press(page, "ArrowDown")
    assert page.run(focus).startswith("the run that passes, service")
    before = page.run("document.getElementById('chart').clientWidth")
    _press(page, "+")
    assert page.run("document.getElementById('chart').clientWidth") > 1.5 * before
    page.run("document.getElementById('beside').click()")
    assert page.run("document.querySelector('.track.beside').checkVisibility()") is False
    assert page.run("document.querySelector('#chart [tabindex=\"0\"]').checkVisibility()") is True


def _press(page: Page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key if len(key) > 1 else "Equal")
