"""Match names against a client's regular expression, in bounded time: topics (KIP-848), transactional ids (KIP-1152).

Python's `re` backtracks for so long on some expressions that one member could stall all brokers (K9). The matcher here
advances the set of all reachable positions in a name at once, as the bits of one integer (Thompson: Regular Expression
Search Algorithm, 1968).
"""

from __future__ import annotations

from functools import lru_cache

from abeyant.broker.groups.consumer.re2 import WORD, Anchor, Char, Choice, Node, PatternError, Repeat, parse

__all__ = ["PatternError", "check", "matches"]

_STEPS = 50_000  # per name: some 20 ms
_LENGTH = 256  # characters of a name: a step over a longer one counts several times


def check(regex: str) -> None:
    """Raise PatternError unless the text is a regular expression that RE2 supports."""
    parse(regex)


@lru_cache(1 << 14)
def matches(regex: str, name: str) -> bool:
    """Return whether `regex` matches the whole name. False also for an invalid or too costly expression."""
    try:
        return bool(_Matcher(name).advance(parse(regex), 1) >> len(name) & 1)
    except (PatternError, _TooCostlyError, RecursionError):
        return False


class _TooCostlyError(Exception):
    pass


class _Matcher:
    """A matcher for one name. A set of positions is an integer: bit 0 is the position before the first character."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _STEPS
        self._step = 1 + len(name) // _LENGTH
        self._positions: dict[Char | Anchor, int] = {}
        self._masks: dict[str, int] = {}  # the positions before each character

    def advance(self, nodes: list[Node], start: int) -> int:
        """Return the positions at which a match of the nodes from one of `start` can end."""
        for node in nodes:
            if not start:
                return 0
            self._spend(self._step)
            if isinstance(node, Char):
                start = (start & self._positions_of(node)) << 1
            elif isinstance(node, Anchor):
                start &= self._positions_of(node)
            elif isinstance(node, Repeat):
                start = self._repeat(node, start)
            else:
                start = self._choose(node, start)
        return start

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooCostlyError

    def _choose(self, choice: Choice, start: int) -> int:
        ends = 0
        for branch in choice.branches:
            self._spend(self._step)
            ends |= self.advance(branch, start)
        return ends

    def _repeat(self, repeat: Repeat, start: int) -> int:
        size = len(self._name)
        for _ in range(min(repeat.least, size + 2)):  # more repetitions reach no new positions
            start = self.advance(repeat.inner, start)
        if repeat.most is None and len(repeat.inner) == 1 and isinstance(char := repeat.inner[0], Char):
            # An addition carries each start to the end of its run of matching characters (Parabix's MatchStar).
            run = self._positions_of(char)
            return (((start & run) + run) ^ run) | start
        ends = start
        further = size + 1 if repeat.most is None else min(repeat.most - repeat.least, size + 1)
        for _ in range(further):
            start = self.advance(repeat.inner, start) & ~ends
            if not start:
                break
            ends |= start
        return ends

    def _positions_of(self, node: Char | Anchor) -> int:
        """Return the positions that a matching character follows, or that the anchor is at."""
        positions = self._positions.get(node)
        if positions is None:
            positions = self._positions[node] = self._before(node) if isinstance(node, Char) else self._at(node)
        return positions

    def _before(self, char: Char) -> int:
        masks = self._masks or self._find_masks()
        self._spend(len(masks) * char.cost // 4)  # a comparison takes a quarter of a step
        positions = 0
        for one, mask in masks.items():
            if char.fits(one):
                positions |= mask
        return positions

    def _find_masks(self) -> dict[str, int]:
        chars = set(self._name)
        self._spend(len(chars) * self._step)
        backwards = self._name[::-1]
        for char in chars:
            self._masks[char] = int("".join("1" if one == char else "0" for one in backwards), 2)
        return self._masks

    def _at(self, anchor: Anchor) -> int:
        name, size = self._name, len(self._name)
        if anchor is Anchor.TEXT_BEGIN:
            return 1
        if anchor is Anchor.TEXT_END:
            return 1 << size
        if anchor is Anchor.LINE_BEGIN:
            return 1 | sum(2 << place for place, char in enumerate(name) if char == "\n")
        if anchor is Anchor.LINE_END:
            return 1 << size | sum(1 << place for place, char in enumerate(name) if char == "\n")
        words = [False, *(char in WORD for char in name), False]
        boundary = sum(1 << place for place in range(size + 1) if words[place] is not words[place + 1])
        return boundary if anchor is Anchor.WORD_BOUNDARY else ~boundary & ((2 << size) - 1)
