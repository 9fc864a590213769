"""Random runs beside a plain list of who waits for what, on a virtual clock."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant import ManualTimer
from abeyant.aio import Outcome, Purgatory, run_virtual

KEYS = st.sampled_from(["a", "b", "c", -1, -2])  # the last two have the same hash
STEPS = st.one_of(
    st.tuples(
        st.just("wait"),
        st.lists(KEYS, min_size=1, max_size=4),
        st.sampled_from(["level", "level", "any", "raise"]),
        st.integers(0, 3),
        st.sampled_from([0.0, 1.0, 2.0, 5.0]),
    ),
    st.tuples(st.just("rise"), KEYS, st.integers(0, 2)),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0])),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
)


class PlannedError(Exception):
    """What a condition of the model's raises."""


class Model:
    """For every wait its keys, level and deadline, and how it has ended."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.purgatory = Purgatory("model", self.timer)
        self.level = 0
        self.tasks: list[asyncio.Task[Outcome]] = []
        self.pending: dict[int, tuple[set[object], str, int, float]] = {}
        self.ends: dict[int, str] = {}

    def holds(self, number: int, kind: str, level: int, checked: bool) -> str | None:
        if kind == "any":
            return "completed" if checked else None
        if self.level < level:
            return None
        return "raised" if kind == "raise" else "completed"

    def look(self, number: int, checked: bool) -> None:
        end = self.holds(number, *self.pending[number][1:3], checked)
        if end is not None:
            del self.pending[number]
            self.ends[number] = end

    async def wait(self, keys: list[object], kind: str, ahead: int, timeout: float) -> None:
        level = self.level + ahead

        def until() -> bool:
            if self.level >= level and kind == "raise":
                raise PlannedError
            return self.level >= level

        number = len(self.tasks)
        waiting = self.purgatory.wait(keys, None if kind == "any" else until, timeout=timeout)
        self.tasks.append(asyncio.create_task(waiting))
        self.pending[number] = (set(keys), kind, level, self.timer.time() + timeout)
        await asyncio.sleep(0)
        self.look(number, False)

    async def rise(self, key: object, by: int) -> None:
        self.level += by
        before = list(self.ends.values()).count("completed")
        completed = self.purgatory.check(key)
        for number in [number for number, (keys, *_) in self.pending.items() if key in keys]:
            self.look(number, True)
        assert completed == list(self.ends.values()).count("completed") - before

    async def pass_time(self, seconds: float) -> None:
        self.timer.advance(seconds)
        for number, (_, _, _, deadline) in list(self.pending.items()):
            if deadline <= self.timer.time():
                del self.pending[number]
                self.ends[number] = "expired"

    async def cancel(self, which: int) -> None:
        if not self.tasks:
            return
        number = which % len(self.tasks)
        self.tasks[number].cancel()
        await asyncio.sleep(0)
        if self.pending.pop(number, None) is not None:
            self.ends[number] = "cancelled"

    async def agrees(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        stats = self.purgatory.stats()
        assert stats.delayed == len(self.pending) == len(self.timer) == len(self.purgatory)
        assert stats.watched == sum(len(keys) for keys, *_ in self.pending.values())
        for number, task in enumerate(self.tasks):
            if number in self.pending:
                assert not task.done()
            elif self.ends[number] == "cancelled":
                assert task.cancelled()
            elif self.ends[number] == "raised":
                assert isinstance(task.exception(), PlannedError)
            else:
                assert task.result() == self.ends[number]


@given(steps=st.lists(STEPS, max_size=30))
@settings(max_examples=2 * settings().max_examples)
def test_waits_against_the_model(steps: list[tuple[str, ...]]) -> None:
    async def main() -> None:
        model = Model()
        calls = {"wait": model.wait, "rise": model.rise, "pass": model.pass_time, "cancel": model.cancel}
        for what, *arguments in steps:
            await calls[what](*arguments)  # type: ignore[operator]
            await model.agrees()
        model.purgatory.close()

    run_virtual(main())
