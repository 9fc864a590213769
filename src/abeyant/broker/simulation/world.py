"""One run from a seed: a cluster, programs, faults and checks on one loop; and the fixture `simulation`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from abeyant.aio.virtual import DeadlockError
from abeyant.broker.checks.check import Check, complaint
from abeyant.broker.checks.history import Event, History
from abeyant.broker.checks.ledger import Ledger
from abeyant.broker.cluster import Cluster
from abeyant.broker.simulation.clients import Consumers, watched_clients
from abeyant.broker.simulation.faults import KINDS, FaultRunner, PlannedFault, plan
from abeyant.broker.simulation.recorder import Recorder
from abeyant.broker.simulation.watcher import Watcher
from abeyant.errors import AbeyantError
from abeyant.simulation import Latency, Process, Run, SimulationLoop, current, run
from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import OWNER, Life

Test = Callable[["Simulation"], Awaitable[None]]

_LOOK_EVERY: Final = 0.5  # seconds between checks after the faults have ended
_STEADY: Final = 1.0  # seconds for which all checks have to pass
_RESTART: Final = 1.0  # seconds until a failed program is restarted, as by a supervisor
_LIMIT: Final = 900.0  # seconds of virtual time
_LOGGERS: Final = {"aiokafka": logging.CRITICAL + 1, "asyncio": logging.CRITICAL + 1, "abeyant": logging.ERROR}
_SMALL: Final = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


@dataclass(frozen=True)
class Options:
    """Options of a simulated test, from its marker: `@pytest.mark.kafka(brokers=3, faults=["pause"])`.

    `settings` are settings of the brokers; `faults` lists kinds of faults, from `KINDS`.
    """

    brokers: int = 3
    settings: Mapping[str, object] = field(default_factory=dict)
    faults: Sequence[str] = KINDS
    horizon: float = 10.0
    """Seconds from the run's start within which faults begin."""
    converge: float = 120.0
    """Seconds after the end of the faults within which all checks must pass."""


@dataclass(frozen=True)
class Failure:
    """Why a run has failed: a check that does not pass, or an error."""

    reason: str
    """The check's name, or the error's class and where it was raised. A shrunk run has the same reason (S5)."""
    message: str
    text: str
    """The traceback of an error; "" for a failed check."""


@dataclass(frozen=True)
class RunResult:
    """The result of a run: `failure` is None for one that passed."""

    seed: int
    faults: tuple[PlannedFault, ...]
    hash: str
    failure: Failure | None
    history: History
    seen: Mapping[tuple[str, str], int]
    """Count of each error by API, and of each change of state of groups, transactions and in-sync replicas."""
    seconds: float
    """Duration in virtual time."""
    watched: Watcher | None = None
    """What was recorded for a timeline; None unless the run was watched."""


Outcome = RunResult  # its former name


class Simulation:
    """The fixture: a cluster, its clients and programs in virtual time, from one seed."""

    def __init__(self, loop: SimulationLoop, kafka: Cluster, history: History) -> None:
        """Not for users: the fixture `simulation` makes it."""
        self.loop = loop
        self.kafka = kafka
        """The cluster, with which a test creates topics, appends records, and injects faults beyond the plan's."""
        self.history = history
        """The run's history so far, as checks read it."""
        self.seed = loop.chance.seed
        """The seed of this run."""
        self.bootstrap = kafka.bootstrap
        """For clients' `bootstrap.servers`."""
        self.checks: list[Check] = []
        self._restarts = 0

    def process(
        self,
        main: Callable[..., Coroutine[Any, Any, Any]],
        *args: Any,
        name: str | None = None,
        restart: bool = True,
    ) -> Process:
        """Start `main(*args)` as a process that faults may kill and restart. Return the process.

        If an error ends the process, the process is restarted after a second, as by a supervisor. If `restart` is
        False, the error fails the run.
        """
        base_name = name or str(getattr(main, "__name__", "process"))
        names = {existing.name for existing in self.loop.processes}
        number = 2
        unique = base_name
        while unique in names:
            unique, number = f"{base_name} {number}", number + 1
        process = self.loop.process(unique, self._supervised if restart else main, *([main, args] if restart else args))
        process.start()
        return process

    async def _supervised(self, main: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...]) -> Any:
        try:
            return await main(*args)
        except SimulationError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever ends a program
            if isinstance(error, SystemExit) and error.code in (None, 0):
                return None
            life = OWNER.get()
            name = "a program" if life is None else life.name
            message = f"{name} ended with {type(error).__name__}, and is begun again"
            self.history.events.append(Event(self.loop.now, message, name, self.loop.now + _RESTART))
            self.loop.call_soon(self._restart_later, life, context=self.loop.network.context)
            await self.loop.create_future()  # its connections and tasks end with it, as the system's do

    def _restart_later(self, life: Life | None) -> None:
        """Kill the rest of a program that has failed, and restart it after a second."""
        for process in self.loop.processes:
            if process.life is life:
                process.kill()
                later = self.loop.now + _RESTART
                self.loop.call_at(later, self._restart, process, context=self.loop.network.context)

    @staticmethod
    def _restart(process: Process) -> None:
        if not process.running:  # a fault may have restarted it meanwhile
            process.start()

    def check(self, *checks: Check) -> None:
        """Register checks for the end of the run. All have to pass within `converge` seconds after the faults' end."""
        for check in checks:
            _require_check(check)
        self.checks += checks

    def ledger(self) -> Ledger:
        """Return a list for the effects of programs that outlives the programs and keeps the time of each entry."""
        return Ledger(lambda: self.loop.now)

    def uniform(self, least: float, most: float) -> float:
        """Return a random number from `least` to `most`, as `random.uniform` does, but determined by the seed."""
        return self.loop.chance.stream("test").between(least, most)

    def choose(self, least: float, most: float) -> float:
        """Former name of `uniform`."""
        return self.uniform(least, most)


def run_seed(
    test: Test,
    seed: int,
    options: Options,
    *,
    faults: Sequence[PlannedFault] | None = None,
    tape: Mapping[str, int] | None = None,
    any_hashes: bool = False,
    watch: bool = False,
) -> RunResult:
    """Run `test` with a seed, with `faults` in place of the seed's own if they are given.

    `tape` and `any_hashes` are as in `abeyant.simulation.run`. `watch` records requests and state changes for a
    timeline, without changing the run.
    """
    story = _Story(test, seed, options, faults, watch)
    with _quiet_loggers():
        result = run(story.main, seed=seed, tape=tape, latency=None, limit=_LIMIT, any_hashes=any_hashes)
    return story.outcome(result)


class _Story:
    """One run while it is in progress."""

    def __init__(
        self, test: Test, seed: int, options: Options, faults: Sequence[PlannedFault] | None, watch: bool
    ) -> None:
        self._test = test
        self._watch = watch
        self._options = options
        self._given = faults
        self._plan: tuple[PlannedFault, ...] = tuple(faults or ())
        self._failure: Failure | None = None
        self.history = History()
        self._recorder: Recorder | None = None
        self._watcher: Watcher | None = None

    async def main(self) -> None:
        loop, options = current(), self._options
        _swarm(loop)
        if self._given is None:
            self._plan = tuple(plan(loop.chance.stream("faults"), options.horizon, options.faults))
        async with _Cluster(loop, self.history, options.brokers, settings={**_SMALL, **options.settings}) as kafka:
            recorder = self._recorder = Recorder(loop, kafka, self.history)
            kafka._observer = recorder  # type: ignore[assignment]
            simulation = Simulation(loop, kafka, self.history)
            runner = FaultRunner(loop, kafka, lambda: loop.processes, self.history)
            if self._watch:
                recorder.watcher = self._watcher = Watcher(loop, kafka)
                runner.struck = self._watcher.struck
            consumers = Consumers(loop, self.history)
            with watched_clients(consumers):
                fault_task = loop.create_task(runner.run(self._plan), name="faults")
                try:
                    await self._test(simulation)
                    runner.end()
                    self.history.quiet = True
                    await self._converge(simulation, recorder)
                finally:
                    fault_task.cancel()
                    consumers.end()
                    if self._watcher is not None:
                        self._watcher.end()
                        recorder.watcher = None  # closing the cluster is not part of the run
            recorder.take_stock(kafka)

    async def _converge(self, simulation: Simulation, recorder: Recorder) -> None:
        """Wait until all checks pass and go on passing for a second. Raise `_Failed` for the first check that fails."""
        loop, deadline = simulation.loop, simulation.loop.now + self._options.converge
        content_since: float | None = None
        while True:
            history = recorder.take_stock(simulation.kafka)
            verdicts = [(check, check(history)) for check in simulation.checks]
            for process, error in loop.failures:
                raise _Failed(Failure(f"process {process.name}", f"{process.name} ended with {error!r}", _text(error)))
            wrong = next(((check, verdict) for check, verdict in verdicts if verdict.wrong), None)
            if wrong is not None or loop.now >= deadline:
                self._complain([wrong] if wrong else verdicts)
                return
            if any(verdict.missing or not verdict.seen for _, verdict in verdicts):
                content_since = None
            elif content_since is None:
                content_since = loop.now
            elif loop.now - content_since >= _STEADY:
                return
            await asyncio.sleep(_LOOK_EVERY)

    def _complain(self, verdicts: Sequence[tuple[Check, Any]]) -> None:
        for check, verdict in verdicts:
            message = complaint(check, verdict)
            if message is not None:
                raise _Failed(Failure(check.name, message, ""))

    def outcome(self, result: Run) -> RunResult:
        error = result.error
        failure = None
        if isinstance(error, _Failed):
            failure = error.failure
        elif isinstance(error, AbeyantError) and not isinstance(error, RuntimeError):
            raise error  # the test's own mistake; a deadlock or a closed timer is a failure of the program
        elif error is not None:
            failure = Failure(_reason(error), f"{type(error).__name__}: {_first_line(error)}", _text(error))
        seen = self._recorder.seen if self._recorder else {}
        return RunResult(
            result.seed, self._plan, result.hash, failure, self.history, dict(seen), result.seconds, self._watcher
        )


class _Cluster(Cluster):
    """A cluster that records each session expiry forced by a fault or the test, since checks have to allow it."""

    def __init__(self, loop: SimulationLoop, history: History, brokers: int, settings: Mapping[str, object]) -> None:
        super().__init__(brokers, settings=settings)
        self._events = history.events
        self._run = loop

    def expire_member(self, group: str, member: str) -> None:
        """Expire a member's session, and record it in the history."""
        super().expire_member(group, member)
        message = f"the session of a member of {group} expires ({member})"
        self._events.append(Event(self._run.now, message, group))
        self._run.trace.add(self._run.now, message)


class _Failed(Exception):  # noqa: N818  it carries a failure
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _require_check(value: object) -> None:
    if not isinstance(value, Check):
        hint = f"call it: {value.__name__}(...)" if callable(value) and hasattr(value, "__name__") else "give a Check"
        raise SimulationError(f"simulation.check takes checks, not {value!r}: {hint}")


def _swarm(loop: SimulationLoop) -> None:
    """Draw the latencies of this run's network from the seed."""
    stream = loop.chance.stream("network")
    most = 0.0005 * 40 ** stream.draw()  # seconds: half a millisecond to twenty
    loop.network.latency = Latency(0.0002, max(most, 0.0003), 0.02 * stream.draw(), max(most, 0.3 * stream.draw()))


def _reason(error: BaseException) -> str:
    """Return an error's class and its innermost frame in the user's code, or else its innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [
        frame for frame in frames if "site-packages" not in frame.filename and "abeyant" not in frame.filename
    ]
    kind = "deadlock" if isinstance(error, DeadlockError) else type(error).__name__
    return " at ".join([kind, *(f"{frame.name}:{frame.lineno}" for frame in (user_frames or frames)[-1:])])


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@contextlib.contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Silence aiokafka's and asyncio's loggers, and ours below ERROR: they would report every injected fault."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger, level in zip(loggers, _LOGGERS.values(), strict=True):
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
