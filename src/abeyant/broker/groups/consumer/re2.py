r"""Parse a regular expression in the syntax of RE2/J, which Kafka uses (https://github.com/google/re2/wiki/Syntax).

What RE2 leaves out is refused: look-around, back-references, possessive quantifiers. Of `\p{...}` only the general
categories are known, such as `\p{Lu}`, and no scripts, as Python has no table of scripts. Errors say what RE2/J says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final
from unicodedata import category

__all__ = ["WORD", "Anchor", "Char", "Choice", "Node", "PatternError", "Repeat", "parse"]

WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
"""The characters of a word."""

_LONGEST: Final = 32_767  # characters: the longest string of Kafka's protocol
_MOST_TIMES: Final = 1_000
_DEEPEST: Final = 120  # groups in one another: parsing and matching take four frames of the stack for each
_CLASS_COST: Final = 16  # of a class such as \w: comparisons, with both cases
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAMED: Final = re.compile(r"\?P?<([^>]*)(>?)")
_FLAGS: Final = re.compile("([imsU]*)(?:-([imsU]+))?([:)])")
_OCTAL: Final = re.compile("[1-7][0-7]{1,2}|0[0-7]{0,2}")
_HEX: Final = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
_CONTROL: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PERL: Final = {"d": "0-9", "s": "\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\x00-\x7f", "blank": "\t ", "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@[-`{-~", "space": "\t-\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The characters of each class, as pairs around `-` and single ones."""
_CATEGORIES: Final = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")

Fits = Callable[[str], bool]


class PatternError(Exception):
    """A text that is not a regular expression of RE2. The message says why."""


class Anchor(Enum):
    """A place that a match may have to reach, without a character of its own."""

    TEXT_BEGIN = auto()
    TEXT_END = auto()
    LINE_BEGIN = auto()
    LINE_END = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Char:
    """One character."""

    fits: Fits
    """Whether a character matches."""
    cost: int = 1
    """About how many comparisons `fits` makes at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """`inner`, at least `least` and at most `most` times; None is without limit."""

    least: int
    most: int | None
    inner: list[Node]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Any of the branches."""

    branches: list[list[Node]]


Node = Anchor | Char | Repeat | Choice


@lru_cache(16)  # a long expression takes megabytes
def parse(regex: str) -> list[Node]:
    """Return the nodes of an expression, one after another. Raises PatternError. O(len(regex))."""
    if len(regex) > _LONGEST:
        raise PatternError(f"the expression has {len(regex)} characters; the limit is {_LONGEST}")
    return _Parser(regex).whole()


class _Parser:
    """The expression, the position that is read next, and the flags there."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        self._flags = frozenset[str]()
        self._depth = 0
        self._chars: dict[tuple[str, bool], Char] = {}
        """Nodes by their text and whether case is ignored: an expression may repeat a character many times."""
        self._names: set[str] = set()
        self._last_class = regex.rfind(":]")  # a search from each [: on would take quadratic time

    def whole(self) -> list[Node]:
        """Parse all of it."""
        tree = self._choice()
        if self._at < len(self._regex):  # at a parenthesis that closes none
            raise PatternError("regexp/syntax: internal error")
        return tree

    def _choice(self) -> list[Node]:
        """Parse up to the end of the group."""
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else [Choice(branches)]

    def _sequence(self) -> list[Node]:
        nodes: list[Node] = []
        repeated = False
        while self._at < len(self._regex) and self._regex[self._at] not in "|)":
            limits = self._limits()
            if limits is None:
                repeated = self._regex[self._at] == "{"  # RE2/J refuses {* and {{2}, too
                nodes += self._operand()
                continue
            if not nodes:
                raise PatternError("missing argument to repetition operator")
            if repeated:
                raise PatternError("invalid nested repetition operator")
            self._next("?")  # a lazy match has the same length as a greedy one here: that of the whole name
            nodes.append(Repeat(*limits, [nodes.pop()]))
            repeated = True
        return nodes

    def _limits(self) -> tuple[int, int | None] | None:
        """Parse the limits of a repetition; None if there is none."""
        symbol = self._regex[self._at]
        if symbol in "*+?":
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
        match = _REPEAT.match(self._regex, self._at)
        if match is None:
            return None
        least, is_range, most = match.groups()
        if max(len(least), len(most or "")) > len(str(_MOST_TIMES)):
            raise PatternError("invalid repeat count")
        limits = int(least), (int(most) if most else None) if is_range else int(least)
        if limits[0] > _MOST_TIMES or (limits[1] is not None and not limits[0] <= limits[1] <= _MOST_TIMES):
            raise PatternError("invalid repeat count")
        self._at = match.end()
        return limits

    def _operand(self) -> list[Node]:
        """Parse what is no repetition: one node, several of a quoted text, or none for flags."""
        symbol = self._take()
        if symbol == "(":
            return self._group()
        if symbol == "[":
            begin = self._at - 1
            char = self._set()
            return [self._shared(self._regex[begin : self._at], char)]
        if symbol == ".":
            return [_ANY if "s" in self._flags else _NO_NEWLINE]
        if symbol == "^":
            return [Anchor.LINE_BEGIN if "m" in self._flags else Anchor.TEXT_BEGIN]
        if symbol == "$":
            return [Anchor.LINE_END if "m" in self._flags else Anchor.TEXT_END]
        if symbol != "\\":
            return [self._literal(symbol)]
        anchor = _ANCHORS.get(self._regex[self._at : self._at + 1])
        if anchor is not None:
            self._at += 1
            return [anchor]
        if self._next("Q"):
            text, _, _ = self._regex[self._at :].partition("\\E")
            self._at += len(text)
            self._next("\\E")
            return [self._literal(char) for char in text]
        begin = self._at - 1
        fits = self._class()
        if fits is None:
            return [self._literal(chr(self._escape()))]
        return [self._shared(self._regex[begin : self._at], Char(fits, _CLASS_COST))]

    def _group(self) -> list[Node]:
        flags = self._flags  # those set inside end with the group
        if self._regex.startswith(("?P<", "?<"), self._at):
            self._name()
        elif self._next("?") and not self._set_flags():
            return []
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError("expression nests too deeply")
        inner = self._choice()
        self._depth -= 1
        if not self._next(")"):
            raise PatternError("missing closing )")
        self._flags = flags
        return [Choice([inner])] if len(inner) != 1 else inner

    def _name(self) -> None:
        match = _NAMED.match(self._regex, self._at)
        if match is None or not match[2] or not match[1] or not WORD.issuperset(match[1]):
            raise PatternError("invalid named capture")
        if match[1] in self._names:
            raise PatternError("duplicate capture group name")
        self._names.add(match[1])
        self._at = match.end()

    def _set_flags(self) -> bool:
        """Parse flags up to `:` or `)`, and set them. Return whether a group begins."""
        match = _FLAGS.match(self._regex, self._at)
        if match is None:
            raise PatternError("invalid or unsupported Perl syntax")
        self._at = match.end()
        self._flags = (self._flags | set(match[1])) - set(match[2] or "")
        return match[3] == ":"

    # -- characters

    def _shared(self, text: str, char: Char) -> Char:
        """Return the first node of this text, the same for each of its repetitions: `char`, if it is new."""
        return self._chars.setdefault((text, "i" in self._flags), char)

    def _literal(self, char: str) -> Char:
        if "i" not in self._flags:
            return self._shared(char, Char(char.__eq__))
        cases = _cases(char)
        return self._shared(char, Char(lambda other: not cases.isdisjoint(_cases(other)), _CLASS_COST))

    def _set(self) -> Char:
        """Parse a set of characters, behind its bracket."""
        is_negated = self._next("^")
        parts: list[Fits] = []
        is_first = True
        while is_first or not self._next("]"):
            is_first = False
            if self._at >= len(self._regex):
                raise PatternError("missing closing ]")
            parts.append(self._posix() or self._class_in_set() or self._range())
        fits = _either(parts)
        return Char(_not(fits) if is_negated else fits, _CLASS_COST * len(parts))

    def _posix(self) -> Fits | None:
        if not self._regex.startswith("[:", self._at) or self._at > self._last_class:
            return None
        end = self._regex.find(":]", self._at)
        name = self._regex[self._at + 2 : end]
        if name.removeprefix("^") not in _POSIX:
            raise PatternError("invalid character class range")
        self._at = end + 2
        fits = self._listed(_POSIX[name.removeprefix("^")])
        return _not(fits) if name.startswith("^") else fits

    def _class_in_set(self) -> Fits | None:
        if not self._next("\\"):
            return None
        fits = self._class()
        if fits is None:
            self._at -= 1
        return fits

    def _class(self) -> Fits | None:
        r"""Parse a class of characters behind its backslash, such as \d and \p{L}; None if it is none."""
        name = self._regex[self._at : self._at + 1]
        if name and name in "pP":
            self._at += 1
            return self._category(is_negated=name == "P")
        characters = _PERL.get(name.lower()) if name else None
        if characters is None:
            return None
        self._at += 1
        fits = self._listed(characters)
        return fits if name.islower() else _not(fits)

    def _category(self, *, is_negated: bool) -> Fits:
        name = self._regex[self._at : self._at + 1]
        size = 1
        if name == "{":
            end = self._regex.find("}", self._at)
            name, size = (self._regex[self._at + 1 : end], end + 1 - self._at) if end >= 0 else ("", 1)
        self._at += size
        is_negated = is_negated is not name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return _none if is_negated else _any
        if _CATEGORIES.fullmatch(name) is None:
            raise PatternError("invalid character class range")
        folded = "i" in self._flags

        def fits(char: str) -> bool:
            chars = _cases(char) if folded else (char,)
            return is_negated is not any(category(one).startswith(name) for one in chars)

        return fits

    def _listed(self, characters: str) -> Fits:
        """Return whether a character is one of `characters`, in which `-` stands between two ends."""
        parts = re.findall(r"(.)-(.)|(.)", characters, re.DOTALL)
        return _either([self._between(low or one, high or one) for low, high, one in parts])

    def _range(self) -> Fits:
        low = high = self._set_character()
        if self._next("-"):
            if self._regex.startswith("]", self._at):
                self._at -= 1  # the set ends with it
            else:
                high = self._set_character()
                if high < low:
                    raise PatternError("invalid character class range")
        return self._between(low, high)

    def _between(self, low: str, high: str) -> Fits:
        if "i" in self._flags:
            return lambda char: any(low <= one <= high for one in _cases(char))
        return lambda char: low <= char <= high

    def _set_character(self) -> str:
        if self._at >= len(self._regex):
            raise PatternError("missing closing ]")
        symbol = self._take()
        return chr(self._escape()) if symbol == "\\" else symbol

    def _escape(self) -> int:
        """Parse an escaped character behind its backslash; return its code point."""
        if self._at >= len(self._regex):
            raise PatternError("trailing backslash at end of expression")
        if (octal := _OCTAL.match(self._regex, self._at)) is not None:
            self._at = octal.end()
            return int(octal[0], 8)
        if (hexadecimal := _HEX.match(self._regex, self._at)) is not None:
            code = int(hexadecimal[1] or hexadecimal[2], 16)
            if code <= 0x10FFFF:
                self._at = hexadecimal.end()
                return code
        symbol = self._take()
        if symbol in _CONTROL:
            return _CONTROL[symbol]
        if not symbol.isascii() or symbol.isalnum():
            raise PatternError("invalid escape sequence")
        return ord(symbol)

    # -- the text

    def _take(self) -> str:
        self._at += 1
        return self._regex[self._at - 1]

    def _next(self, text: str) -> bool:
        """Pass `text`, if it comes next."""
        comes = self._regex.startswith(text, self._at)
        self._at += len(text) * comes
        return comes


_ANCHORS: Final = {
    "A": Anchor.TEXT_BEGIN,
    "z": Anchor.TEXT_END,
    "b": Anchor.WORD_BOUNDARY,
    "B": Anchor.NO_WORD_BOUNDARY,
}


def _cases(char: str) -> frozenset[str]:
    """Return a character and its other cases of one character each."""
    return frozenset(one for one in (char, char.lower(), char.upper(), char.lower().upper()) if len(one) == 1)


def _either(parts: list[Fits]) -> Fits:
    return parts[0] if len(parts) == 1 else lambda char: any(fits(char) for fits in parts)


def _not(fits: Fits) -> Fits:
    return lambda char: not fits(char)


def _any(char: str) -> bool:
    return True


def _none(char: str) -> bool:
    return False


def _no_newline(char: str) -> bool:
    return char != "\n"


_ANY: Final = Char(_any)
_NO_NEWLINE: Final = Char(_no_newline)
