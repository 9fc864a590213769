"""The drawings of the pages are those of the script, load nothing, and the wheel does what a wheel does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pages.browser import NAMES, Page, browse, installed
from scripts.draw_explanations import BUCKETS, FIRST, IMAGES, PICTURES, SECOND, TASKS, TICK, TURNS, _bucket, _captions

WHEEL = IMAGES / "wheel.svg"
# The film set to a tick: where the hand of each ring points in degrees, each task, and the line below.
SEEN = """((seconds) => {
  for (const one of document.getAnimations()) { one.pause(); one.currentTime = seconds * 1000; }
  const turned = (hand) => { const { a, b } = new DOMMatrix(getComputedStyle(document.querySelector(hand)).transform);
                             return (Math.round(Math.atan2(b, a) * 180 / Math.PI) + 360) %% 360; };
  const task = (name) => { const one = document.querySelector('.task' + name), style = getComputedStyle(one);
                           const { e, f } = new DOMMatrix(style.transform), dot = one.querySelector('circle');
                           return [+style.opacity, +dot.getAttribute('cx') + e, +dot.getAttribute('cy') + f]; };
  const shown = (one) => getComputedStyle(one).opacity === '1';
  const said = [...document.querySelectorAll('g[class^=said]')].filter(shown).map((one) => one.textContent);
  return { hands: [turned('.first'), turned('.second')], tasks: [...'ABC'].map(task), said,
           films: document.getAnimations().length };
})(%s)"""


@pytest.mark.parametrize("name", PICTURES)
def test_each_is_what_the_script_draws(name: str) -> None:
    drawn = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == PICTURES[name](), "python -m scripts.draw_explanations"
    assert "prefers-color-scheme: dark" in drawn
    assert re.findall(r"(?:href|src|url\()=?\"?(?!#)[^)\s]+", drawn.replace("url(#tip)", "")) == []


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    browser = installed()
    if browser is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)})")
    with browse(browser) as page:
        yield page


def motion(page: Page, wanted: str) -> None:
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": wanted}])
    page.open(WHEEL)


def test_the_wheel_stands_still_where_less_motion_is_wanted(page: Page) -> None:
    motion(page, "reduce")
    seen = page.run(SEEN % 0)
    assert seen["films"] == 0
    assert seen["said"] == [_captions()[0][2]]
    assert [task[0] for task in seen["tasks"]] == [1, 1, 1]


def test_the_wheel_turns_cascades_and_runs_each_task_at_its_tick(page: Page) -> None:
    motion(page, "no-preference")
    for tick in range(BUCKETS * TURNS):
        seen = page.run(SEEN % ((tick + 0.02) * TICK))
        degrees = 360 // BUCKETS
        assert seen["hands"] == [tick % BUCKETS * degrees, tick // BUCKETS * degrees], tick
        assert seen["said"] == [words for begin, end, words in _captions() if begin <= tick < end]
        later = page.run(SEEN % ((tick + 0.95) * TICK))
        for (name, (_, due)), (visible, x, y) in zip(TASKS.items(), later["tasks"], strict=True):
            assert visible == (tick < due), f"{name} at tick {tick}"
            there = (
                _bucket(FIRST, due % BUCKETS) if tick >= BUCKETS or due < BUCKETS else _bucket(SECOND, due // BUCKETS)
            )
            assert abs(x - there[0]) < 14, f"{name} at tick {tick}"
            assert abs(y - there[1]) < 14, f"{name} at tick {tick}"
