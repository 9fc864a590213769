"""Check that each input of a program has its effect once: each order is packed once, for instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History


def each_effect_once(effects: Callable[[], Iterable[object]], inputs: Callable[[], Iterable[object]]) -> Check:
    """Check that `effects()` has each entry of `inputs()` once, and no other entry.

    Both functions return the entries so far. An entry identifies an input and its effect, as an order's number does. A
    repeated or unknown effect is a violation at once; a missing effect may still come.
    """

    def look(_: History) -> Verdict:
        expected, actual = Counter(inputs()), Counter(effects())
        wrong = []
        for entry, times in sorted(actual.items(), key=repr):
            if entry not in expected:
                wrong.append(f"{entry!r} took effect, and nobody asked for it")
            elif times > expected[entry]:
                wrong.append(f"{entry!r} took effect {times} times")
        missing = [f"{entry!r} took no effect" for entry in sorted(expected - actual, key=repr)]
        return Verdict(expected.total(), "input", tuple(wrong), tuple(missing))

    return Check("each effect once", look)


def each_effect_at_least_once(effects: Callable[[], Iterable[object]], inputs: Callable[[], Iterable[object]]) -> Check:
    """Check that `effects()` has each entry of `inputs()`: for programs that may repeat effects, but must lose none."""

    def look(_: History) -> Verdict:
        expected, actual = set(inputs()), set(effects())
        missing = [f"{entry!r} took no effect" for entry in sorted(expected - actual, key=repr)]
        return Verdict(len(expected), "input", (), tuple(missing))

    return Check("each effect at least once", look)
