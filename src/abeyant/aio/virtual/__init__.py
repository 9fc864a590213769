"""Virtual time for asyncio: the clock jumps to the next expiration whenever nothing else can run.

For tests and simulations. `asyncio.sleep(3600)`, `asyncio.timeout`, `wait_for`, `call_later` and whatever is built on
them finish at once, in the order of their deadlines, the same way at every run. docs/virtual-time.md is its manual.

The idea is that of trio's MockClock with its autojump, and of fluxcapacitor before it: time is only ever waited for, so
when everybody waits, nobody sees whether it passed slowly or at once. How the rooms divide:

* `clock` is what the user holds, and the block in which it holds; `timeline` beneath it, what time it is and where
  it may go next.
* `selector` is the place where a loop sleeps. It decides what is done there instead.
* `outside` finds what could still wake the loop from outside: `sockets`, `connects`, `threads`, `signals`,
  executor jobs, processes. `rest` asks the system how a thread sleeps.
* `mount` puts a clock on a loop and takes it off.
* `python_clocks` lets `time.time`, `time.monotonic` and their like go with a loop; `diverted` changes such a function;
  `real_clocks` finds who waits for those without that.
* `deadlock` tells what every task waits for.
"""

from abeyant.aio.virtual.clock import VirtualClock, virtual_time
from abeyant.aio.virtual.deadlock import DeadlockError, Waiting
from abeyant.aio.virtual.run import run_virtual

__all__ = ["DeadlockError", "VirtualClock", "Waiting", "run_virtual", "virtual_time"]
