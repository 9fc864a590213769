"""Drive a simulation by Hypothesis: a strategy for lists of faults, and a function that runs a test with them.

A test takes faults by `@given(strategies.faults(kinds=("kill", "lose answer")))`, and calls
`strategies.simulate(story, faults=faults)`.

Hypothesis then shrinks the faults together with all else that it draws. It is imported only when a strategy is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.simulation.faults import KINDS, PlannedFault, errors_of, longest, plan
from abeyant.broker.simulation.world import Options, RunResult, Test, run_seed
from abeyant.errors import AbeyantError
from abeyant.simulation.chance import Chance

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["faults", "simulate"]

_TENTHS: Final = 10
_MOST: Final = 5
_PLACES: Final = 8
_TIMES: Final = 3


def faults(
    kinds: Sequence[str] = KINDS, *, horizon: float = 10.0, most: int = _MOST
) -> SearchStrategy[list[PlannedFault]]:
    """Return a strategy for lists of up to `most` faults of these kinds within `horizon` seconds, sorted by time.

    Hypothesis shrinks to fewer, earlier and shorter faults. Raises SimulationError for an unknown kind, and
    AbeyantError if Hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st
    except ImportError:
        raise AbeyantError("these strategies need Hypothesis: pip install hypothesis") from None
    plan(Chance(0).stream("faults"), horizon, kinds)  # raises for an unknown kind

    @st.composite
    def fault(draw: Any) -> PlannedFault:
        kind = draw(st.sampled_from(list(kinds)))
        errors = errors_of(kind)
        api = draw(st.sampled_from(list(errors)))
        error = draw(st.sampled_from(errors[api]))
        at = 0 if kind == "clock" else draw(st.integers(0, int(horizon * _TENTHS)))
        length = draw(st.integers(1, max(1, int(longest(kind) * _TENTHS))))
        position = draw(st.integers(0, _PLACES - 1)) / _PLACES
        return PlannedFault(at / _TENTHS, kind, position, length / _TENTHS, api, error, draw(st.integers(1, _TIMES)))

    by_time = st.lists(fault(), max_size=most).map(lambda items: sorted(items, key=lambda item: item.at))
    return by_time if kinds else st.just([])


def simulate(
    test: Test, *, faults: Sequence[PlannedFault] = (), seed: int = 0, options: Options | None = None
) -> RunResult:
    """Run `test` with a seed, but with these faults in place of the seed's own; return the result.

    Raises AssertionError if the run fails, with the failure's message and the events of the run. String hashes are
    those of this process. So the same faults repeat a run in this process, but in others only if PYTHONHASHSEED is set.
    """
    outcome = run_seed(test, seed, options or Options(), faults=faults, any_hashes=True)
    if outcome.failure is not None:
        events = "".join(f"\n  at {event.at:.1f} s {event.what}" for event in outcome.history.events)
        raise AssertionError(f"{outcome.failure.message}{events}\n{outcome.failure.text}".rstrip())
    return outcome
