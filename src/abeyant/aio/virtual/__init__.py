"""Virtual time for asyncio: the clock jumps to the next deadline whenever nothing else can run.

For tests and simulations. `asyncio.sleep(3600)`, `asyncio.timeout`, `wait_for`, `call_later` and everything built on
them finish at once, in deadline order, the same way in every run. docs/virtual-time.md is the manual.

The idea comes from trio's MockClock with autojump, and before that from fluxcapacitor: while every task waits, no task
can tell whether time passes slowly or at once. The modules:

* `clock` has the user's `VirtualClock`; `timeline`, its base class, has the current time and computes the next one.
* `selector` replaces the selector in which a loop sleeps: it moves the clock instead.
* `outside` finds what could still wake the loop from outside: `sockets`, `connects`, `threads`, `signals`, executor
  jobs, processes. `rest` asks the system how a thread sleeps.
* `mount` installs a clock on a loop and removes it.
* `python_clocks` makes `time.time`, `time.monotonic` and the like show the loop's time; `diverted` redirects such a
  function; `real_clocks` detects tasks that wait for the real clocks instead.
* `deadlock` reports what every task awaits.
"""

from abeyant.aio.virtual.clock import VirtualClock, virtual_time
from abeyant.aio.virtual.deadlock import DeadlockError, Waiting, WaitingTask
from abeyant.aio.virtual.run import run_virtual

__all__ = ["DeadlockError", "VirtualClock", "Waiting", "WaitingTask", "run_virtual", "virtual_time"]
