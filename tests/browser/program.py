"""What must work in Pyodide. Run there, by program.mjs; prints a word at its end."""

import asyncio
import threading

import abeyant
from abeyant import aio
from abeyant.engine import is_compiled

assert not is_compiled()
assert threading.active_count() == 1


class AckAll(abeyant.DelayedOperation):
    acknowledged = 0

    def try_complete(self) -> bool:
        return AckAll.acknowledged >= 3 and self.force_complete()


manual = abeyant.ManualTimer()
purgatory = abeyant.Purgatory("produce", manual)
early, late = AckAll(30), AckAll(0.25)
assert not purgatory.try_complete_else_watch(early, ["partition"])
assert not purgatory.try_complete_else_watch(late, ["partition"])
manual.advance(1)
AckAll.acknowledged = 3
assert purgatory.check_and_complete("partition") == 1
assert (early.outcome, late.outcome, len(manual)) == ("completed", "expired", 0)

refusal = ""
try:
    abeyant.SystemTimer().call_later(1, print)
except RuntimeError as error:
    refusal = str(error)
assert "needs a thread of its own" in refusal
assert "use abeyant.aio.Timer" in refusal


async def main() -> None:
    loop = asyncio.get_running_loop()
    timer = aio.Timer()
    order: list[int] = []
    done = asyncio.Event()
    # Started later and due earlier, though a busy machine may take long from one start to the next.
    timer.call_later(1, order.append, 2)
    timer.call_later(0.01, order.append, 1)
    assert timer.call_later(0.5, order.append, 3).cancel()
    timer.call_later(1.01, done.set)
    began = loop.time()
    await done.wait()
    assert loop.time() - began >= 1.01, "T1"
    assert order == [1, 2]
    waits = aio.Purgatory("fetch")
    waiting = asyncio.ensure_future(waits.wait(["key"], until=lambda: bool(order[2:]), timeout=5))
    await asyncio.sleep(0)
    order.append(4)
    waits.check("key")
    assert await waiting == "completed"
    assert await waits.wait(["key"], until=lambda: False, timeout=0.01) == "expired"


await main()  # type: ignore[top-level-await]  # noqa: F704  Pyodide allows it
print("alive")
