"""Match names against a client's regular expression, in bounded time: topics (KIP-848), transactional ids (KIP-1152).

Kafka uses RE2/J: no look-around, no back-references, linear time. Python's `re` supports look-around and
back-references, and backtracks for so long on some expressions that one member could stall all brokers (K9). So
Python's parser only reads the expression. The matcher here advances the set of all reachable positions in a name at
once, as the bits of one integer (Thompson: Regular Expression Search Algorithm, 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from re import ASCII, IGNORECASE, LOCALE, VERBOSE, error
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_LONGEST = 32_767  # characters: the longest string of Kafka's protocol
_MOST_TIMES = 1_000  # RE2's limit of a counted repetition
_STEPS = 50_000  # per name: some 20 ms
_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    ops.CATEGORY_DIGIT: str.isdigit,
    ops.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    ops.CATEGORY_WORD: lambda char: char in _WORD,
    ops.CATEGORY_NOT_WORD: lambda char: char not in _WORD,
}
_NOT_RE2 = ASCII | LOCALE | VERBOSE  # flags that only Python has
_FLAGS = "flags other than i, m and s are not supported"
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": r"0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The characters of each POSIX class, such as [:alpha:], as written in a set of Python's `re`."""
_CHARACTERS = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT)


class PatternError(Exception):
    """A text that is not a regular expression of RE2. The message says why."""


@lru_cache(256)
def check(regex: str) -> None:
    """Raise PatternError unless the text is a regular expression that RE2 supports."""
    _parse(regex)


@lru_cache(1 << 14)
def matches(regex: str, name: str) -> bool:
    """Return whether `regex` matches the whole name. False also for an invalid or too costly expression."""
    try:
        tree, flags = _parse(regex)
        return bool(_Matcher(name).advance(tree, 1, flags) >> len(name) & 1)
    except (PatternError, _TooCostlyError):
        return False


class _TooCostlyError(Exception):
    pass


@lru_cache(256)
def _parse(regex: str) -> tuple[list[Any], int]:
    if len(regex) > _LONGEST:
        raise PatternError(f"the expression has {len(regex)} characters; the limit is {_LONGEST}")
    try:
        pattern = parser.parse(_of_python(regex))
        if pattern.state.flags & _NOT_RE2:
            raise PatternError(_FLAGS)
        _require_supported(pattern)
    except RecursionError:
        raise PatternError("the expression nests too deeply") from None
    except (error, ValueError, OverflowError) as cause:
        raise PatternError(str(cause)) from None
    return list(pattern), pattern.state.flags


def _of_python(regex: str) -> str:
    """Return the expression with its sets rewritten for Python's `re`, which lacks [[:alpha:]] and warns of [&&].

    Raises PatternError for an unknown character class.
    """
    parts: list[str] = []
    at = 0
    while at < len(regex):
        if regex[at] == "\\":
            parts.append(regex[at : at + 2])
            at += 2
        elif regex[at] == "[":
            parts.append("[^" if regex.startswith("[^", at) else "[")
            at = _set_of_python(regex, at + len(parts[-1]), parts)
        else:
            parts.append(regex[at])
            at += 1
    return "".join(parts)


def _set_of_python(regex: str, at: int, parts: list[str]) -> int:
    """Add the set's characters from `at` on, and its end, to `parts`. Return the position after the set."""
    begin = at
    while at < len(regex) and (regex[at] != "]" or at == begin):
        end = regex.find(":]", at + 2) if regex.startswith("[:", at) else -1
        if end > 0:
            name = regex[at + 2 : end]
            if name not in _POSIX:
                raise PatternError(f"unknown character class [:{name}:]")
            parts.append(_POSIX[name])
            at = end + 2
            continue
        at = _character_of_python(regex, at, parts)
        if regex[at : at + 1] == "-" and regex[at + 1 : at + 2] not in ("]", ""):  # a range
            parts.append("-")
            at = _character_of_python(regex, at + 1, parts)
    parts.append(regex[at : at + 1])
    return at + 1


def _character_of_python(regex: str, at: int, parts: list[str]) -> int:
    """Add the set's character at `at` to `parts`, escaped. Return the position after the character."""
    size = 2 if regex[at] == "\\" else 1
    parts.append(("\\" if regex[at] in "[]&~|-" else "") + regex[at : at + size])
    return at + size


def _require_supported(tree: Any) -> None:
    for op, argument in tree:
        if op in _REPEATS:
            least, most, inner = argument
            if least > _MOST_TIMES or (most is not ops.MAXREPEAT and most > _MOST_TIMES):
                raise PatternError(f"a repeat count is too large: the limit is {_MOST_TIMES}")
            _require_supported(inner)
        elif op is ops.SUBPATTERN:
            if argument[1] & _NOT_RE2:
                raise PatternError(_FLAGS)
            _require_supported(argument[3])
        elif op is ops.BRANCH:
            for inner in argument[1]:
                _require_supported(inner)
        elif op is not ops.AT and op not in _CHARACTERS:
            raise PatternError(
                "look-around, back-references, atomic groups and possessive quantifiers are not supported"
            )


class _Matcher:
    """A matcher for one name. A set of positions is an integer: bit 0 is the position before the first character."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _STEPS
        self._positions: dict[tuple[Any, int, int], int] = {}

    def advance(self, tree: Any, start: int, flags: int) -> int:
        """Return the positions at which a match of the expression from one of `start` can end."""
        for op, argument in tree:
            if not start:
                return 0
            self._left -= 1
            if self._left < 0:
                raise _TooCostlyError
            if op in _CHARACTERS:
                start = (start & self._before_match(op, argument, flags)) << 1
            elif op in _REPEATS:
                least, most, inner = argument
                start = self._repeat(least, most, inner, start, flags)
            elif op is ops.SUBPATTERN:
                _, added_flags, removed_flags, inner = argument
                start = self.advance(inner, start, (flags | added_flags) & ~removed_flags)
            elif op is ops.BRANCH:
                ends = 0
                for inner in argument[1]:
                    ends |= self.advance(inner, start, flags)
                start = ends
            else:
                start &= self._at(argument)
        return start

    def _repeat(self, least: int, most: int, inner: Any, start: int, flags: int) -> int:
        size = len(self._name)
        for _ in range(min(least, size + 2)):  # more repetitions reach no new positions
            start = self.advance(inner, start, flags)
        ends = start
        for _ in range(min(int(most) - least, size + 1)):
            start = self.advance(inner, start, flags) & ~ends
            if not start:
                break
            ends |= start
        return ends

    def _before_match(self, op: Any, argument: Any, flags: int) -> int:
        """Return the positions that a matching character follows."""
        key = op, id(argument), flags & IGNORECASE  # the id is safe: the expression outlives this object
        positions = self._positions.get(key)
        if positions is None:
            chars = set(self._name)
            self._left -= len(chars) * len(argument) if op is ops.IN else 1
            matching = {
                char for char in chars if _fits(op, argument, {char.lower(), char.upper()} if key[2] else {char})
            }
            positions = sum(1 << place for place, char in enumerate(self._name) if char in matching)
            self._positions[key] = positions
        return positions

    def _at(self, anchor: Any) -> int:
        name = self._name
        if anchor in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return 1
        if anchor in (ops.AT_END, ops.AT_END_STRING):
            return 1 << len(name)
        words = [False, *(char in _WORD for char in name), False]
        boundary = sum(1 << place for place in range(len(name) + 1) if words[place] is not words[place + 1])
        return boundary if anchor is ops.AT_BOUNDARY else ~boundary & ((2 << len(name)) - 1)


def _fits(op: Any, argument: Any, chars: set[str]) -> bool:
    """Return whether a character matches. `chars` are the character, or its lower and upper case."""
    if op is ops.ANY:
        return True  # no topic name has a newline
    if op is ops.IN:
        negated = argument[0][0] is ops.NEGATE
        return negated is not any(_in(kind, value, chars) for kind, value in argument[negated:])
    return (op is ops.NOT_LITERAL) is not _in(ops.LITERAL, argument, chars)


def _in(kind: Any, value: Any, chars: set[str]) -> bool:
    if kind is ops.LITERAL:
        return chr(value) in chars
    if kind is ops.RANGE:
        return any(value[0] <= ord(char) <= value[1] for char in chars)
    return any(_CATEGORIES[value](char) for char in chars)
