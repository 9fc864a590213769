"""A user's program. Type checkers must take all of it, and refuse just the lines that say so."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import assert_type

import abeyant
from abeyant import aio


def send(peer: str, number: int) -> bool:
    return bool(peer) and number > 0


def report(error: BaseException, callback: abeyant.Callback) -> None:
    print(error, callback)


class AckAll(abeyant.DelayedOperation):
    def __init__(self, offset: int) -> None:
        super().__init__(timeout=30.0)
        self.offset = offset

    def try_complete(self) -> bool:
        return self.offset < 10 and self.force_complete()

    def on_expiration(self) -> None:
        print("expired")


handler: abeyant.ErrorHandler = report
timer = abeyant.SystemTimer(name="rpc", tick=timedelta(milliseconds=1), on_error=handler)
task = timer.call_later(30.0, send, "peer", 1)
assert_type(task, abeyant.TimerTask)
assert_type(task.cancel(), bool)
timer.call_at(timer.time() + 1, print, "as", "many", 2)
timer.call_later(1.0, send, "peer")  # type: ignore[arg-type]
timer.call_later(1.0, send, 1, "peer")  # type: ignore[arg-type]
timer.call_later("1", print)  # type: ignore[arg-type]
abeyant.ManualTimer().call_later(1.0, send, "peer")  # type: ignore[arg-type]
pending: list[abeyant.PendingTask] = timer.close()

manual = abeyant.ManualTimer()
purgatory = abeyant.Purgatory("produce", manual)  # no annotation needed
assert_type(purgatory, "abeyant.Purgatory[abeyant.DelayedOperation]")
purgatory.try_complete_else_watch(AckAll(20), ["partition-0"])
assert_type(purgatory.check_and_complete("partition-0"), int)

produce: abeyant.Purgatory[AckAll] = abeyant.Purgatory("produce", manual)
assert_type([ack.offset for ack in produce.close()], list[int])
outcome: abeyant.Outcome | None = AckAll(1).outcome

plain = abeyant.IdleDetector(30.0, print)
plain.seen("anyone")
idle: abeyant.IdleDetector[str] = abeyant.IdleDetector(30.0, lambda peer: print(peer.upper()), manual)
idle.seen("peer")
idle.seen(5)  # type: ignore[arg-type]
assert_type(idle.close(), list[str])


resolver = abeyant.Resolver(abeyant.ManualTimer(), forget_after=5.0)
with resolver.instant() as instant:
    assert_type(instant, abeyant.Instant)
assert_type(resolver.stats(), abeyant.ResolverStats)
ends: list[abeyant.ResolutionOutcome] = [end.outcome for end in resolver.close()]
abeyant.Resolver(forget_after="soon")  # type: ignore[arg-type]
abeyant.Resolver(forgetting=5.0)  # type: ignore[call-arg]


class Ahead(aio.EventLoop):
    def time(self) -> float:
        return super().time() + 5.0


async def main() -> str:
    loop = asyncio.get_running_loop()
    loop.call_later(1.0, send, "peer", 1)
    mine = aio.EventLoop()
    handle: asyncio.TimerHandle = mine.call_later(1.0, send, "peer", 1)
    mine.call_at(mine.time() + 1.0, send, "peer")  # type: ignore[arg-type]
    handle.cancel()
    mine.close()
    later = aio.Timer()
    later.call_later(1.0, send, "peer")  # type: ignore[arg-type]
    waits = aio.Purgatory("waits")
    assert_type(await waits.wait(["key"], until=lambda: True, timeout=30.0), aio.WaitOutcome)
    async with aio.virtual_time() as clock:
        await asyncio.sleep(3600)
        assert_type(clock.time(), float)
    return "done"


assert_type(aio.run(main()), str)
assert_type(aio.run_virtual(main(), clock=aio.VirtualClock(start=5)), str)
asyncio.Runner(loop_factory=aio.EventLoop).close()
