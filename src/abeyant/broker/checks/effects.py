"""Check that each input has its effect once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History


def each_effect_once(effects: Callable[[], Iterable[object]], inputs: Callable[[], Iterable[object]]) -> Check:
    """Check that each of `inputs` is among `effects` once, and nothing else is.

    Both return the entries so far, from a program's own ledger: what identifies an effect, an order's number for
    instance. A repeated effect is a violation at once; a missing one may still come.
    """

    def look(_: History) -> Verdict:
        wanted, found = Counter(inputs()), Counter(effects())
        wrong = []
        for one, times in sorted(found.items(), key=repr):
            if one not in wanted:
                wrong.append(f"{one!r} took effect, and nobody asked for it")
            elif times > wanted[one]:
                wrong.append(f"{one!r} took effect {times} times")
        missing = [f"{one!r} took no effect" for one in sorted(wanted - found, key=repr)]
        return Verdict(wanted.total(), "input", tuple(wrong), tuple(missing))

    return Check("each effect once", look)


def each_effect_at_least_once(effects: Callable[[], Iterable[object]], inputs: Callable[[], Iterable[object]]) -> Check:
    """Check that each of `inputs` is among `effects`: for programs that may repeat effects, but must not lose any."""

    def look(_: History) -> Verdict:
        wanted, found = set(inputs()), set(effects())
        missing = [f"{one!r} took no effect" for one in sorted(wanted - found, key=repr)]
        return Verdict(len(wanted), "input", (), tuple(missing))

    return Check("each effect at least once", look)
