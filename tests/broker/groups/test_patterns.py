"""Regular expressions of topics' names: as RE2/J's, in a bounded time."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker.groups.consumer.patterns import PatternError, check, matches

_ATOMS = st.sampled_from(
    ["a", "b", "A", ".", "[ab]", "[^a]", "[a-c_]", r"\d", r"\w", r"\W", r"\.", "^", "$", r"\b", r"\B", r"\A", "", "-"]
)
_REPEATS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{3,}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = inner.flatmap(lambda one: st.sampled_from([f"({one})", f"(?:{one})", f"(?i:{one})", f"(?P<n>{one})"]))
    return st.one_of(
        st.builds(str.__add__, inner, inner),
        st.builds("{}|{}".format, inner, inner),
        grouped,
        st.builds("(?:{}){}".format, inner, _REPEATS),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=12), st.text("abAc_.-0", min_size=1, max_size=9))
def test_it_matches_what_pythons_matches(regex: str, name: str) -> None:
    try:
        expected = re.fullmatch(regex, name) is not None
    except re.error:
        with pytest.raises(PatternError):
            check(regex)
        return
    check(regex)
    assert matches(regex, name) is expected


@pytest.mark.parametrize(
    "regex",
    ["(", "(?=a)a", "(?!internal).*", "(?<!a)b", r"(a)\1", "a*+", "(?>a)b", "a{1001}",
     "(" * 5_000 + ")" * 5_000,
     "a" * 40_000, "(?x)a", "(?x:a)", "(?a)a", "[[:letters:]]", "[a", "[a-", "[", "\\", "[\\", "[z-a]"],
)  # fmt: skip
def test_what_re2_does_not_have_is_refused(regex: str) -> None:
    with pytest.raises(PatternError):
        check(regex)


@pytest.mark.parametrize(
    ("regex", "name", "expected"),
    [
        ("[[:alpha:]]+", "abc", True), ("[[:alpha:]]+", "a1", False), ("[^[:digit:]]+", "a1", False),
        ("[[:alpha:]-]+", "ab-c", True), ("[[:punct:]]+", "[]^_", True), ("[[a]+", "[a", True),
        ("[a&&b]+", "a&b", True), ("[a||b]+", "a|", True), ("[]a]+", "a]", True), ("[^]a]+", "b", True),
        ("[--/]", ".", True), ("[a-c--.]+", "ab-.", True), ("[!--]+", "*-", True), ("[-a]+", "-a", True),
        ("[a-]+", "-a", True), (r"[\]\[]+", "][", True), (r"\[[a-z0-9._-]+\]", "[x.y-1_]", True),
    ],
)  # fmt: skip
def test_sets_are_those_of_re2(regex: str, name: str, expected: bool) -> None:
    """Python would warn of some of them, as of sets to come."""
    check(regex)
    assert matches(regex, name) is expected


@pytest.mark.parametrize(
    ("regex", "name", "expected"),
    [
        (r"\Qa.b\E", "a.b", True), (r"\Qa.b\E", "axb", False), (r"\Qa.b", "a.b", True), (r"\Qab\E+", "abb", True),
        (r"\pL+", "aé", True), (r"\p{Lu}", "a", False), (r"(?i)\p{Lu}", "a", True), (r"\P{L}\p{^L}", "1.", True),
        (r"[\pL_]+", "a_", True), (r"\p{Any}", "x", True), ("[[:^alpha:]]", "1", True), (r"\d", "\u0663", False),
        (r"\s", "\v", False), (r"\x{61}\141\x61", "aaa", True), (r"a\z", "a", True), ("(?<n>a)", "a", True),
        ("(?U)a+", "aa", True), ("a(?i)b|c", "aB", True), ("a(?i)b|c", "C", True), ("(a(?i)b)c", "aBC", False),
        ("(?i-s:A)b", "ab", True), ("^*a$+", "a", True), ("a{,2}", "a{,2}", True), ("a{02}", "a{02}", True),
        ("a(?i)*", "aaa", True), ("a.b", "a\nb", False), ("(?s)a.b", "a\nb", True), ("(?m)a$.^b", "a\nb", False),
        ("(?ms)a$.^b", "a\nb", True), ("[^a]", "\n", True), (r"\_\-", "_-", True), ("[k]", "\u212a", False),
    ],
)  # fmt: skip
def test_it_reads_what_re2_has_and_python_has_not(regex: str, name: str, expected: bool) -> None:
    """As RE2/J 1.8 has it, which Kafka 4.4 brings; so are the descriptions below."""
    check(regex)
    assert matches(regex, name) is expected


@pytest.mark.parametrize(
    ("regex", "description"),
    [
        ("(a", "missing closing )"), ("a)", "regexp/syntax: internal error"), ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"), ("[[:nope:]]", "invalid character class range"),
        (r"\p{Nope}", "invalid character class range"), (r"[a-\d]", "invalid escape sequence"),
        (r"\C", "invalid escape sequence"), (r"a\Z", "invalid escape sequence"), (r"\1", "invalid escape sequence"),
        (r"\x{110000}", "invalid escape sequence"), ("\\", "trailing backslash at end of expression"),
        ("*a", "missing argument to repetition operator"), ("(?i)*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"), ("a*+", "invalid nested repetition operator"),
        ("{*", "invalid nested repetition operator"), ("a{3,2}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid named capture"), ("(?P<>a)", "invalid named capture"),
        ("(?#a)", "invalid or unsupported Perl syntax"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_as_by_re2j(regex: str, description: str) -> None:
    with pytest.raises(PatternError) as raised:
        check(regex)
    assert str(raised.value) == description


@given(st.text(r"ab[]()^-&|~:\{}*?x1", max_size=12))
def test_any_text_is_an_expression_or_refused(regex: str) -> None:
    with contextlib.suppress(PatternError):
        check(regex)
    matches(regex, "ab-1")


@pytest.mark.parametrize(
    "regex", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*" * 30 + "b", "((((a*$)|a)*$)|a)*$b", "((a{900}){900}){900}"]
)
def test_none_takes_for_ever(regex: str) -> None:
    check(regex)
    assert not matches(regex, "a" * 249)
    assert matches("(a+)+", "a" * 249)


@pytest.mark.parametrize(
    "regex",
    [
        "(?i)[" + "!" * 32_000 + "]", ".*" * 1_000, "a|" * 16_000, "((" + "|" * 500 + "){1000}){1000}b",
        "(" * 5 + "|" * 1_000 + "){1000}" * 5 + "b", "(?i)(" + "[[:^punct:]]|" * 2_000 + "b)*c", r"\pL" * 5_000,
        "(a|" * 110 + "b" + ")*" * 110 + "c",
    ],
)  # fmt: skip
def test_a_long_expression_over_a_long_name_is_given_up_in_time(regex: str) -> None:
    """In some milliseconds each; without the budget, in up to a minute."""
    check(regex)
    for name in ("a" * 32_767, "".join(map(chr, range(0x100, 0x100 + 249)))):
        assert not matches(regex, name) or set(regex) == set(".*")


def test_a_run_of_one_character_class_may_be_long() -> None:
    assert matches(".*", "a" * 32_767)
    assert matches("[a-c]{3,}b", "abc" * 10_000 + "b")
    assert not matches("[a-c]*", "abc" * 10_000 + "d")


def test_a_count_may_have_thousands_of_digits() -> None:
    for count in ("{" + "1" * 5_000 + "}", "{1," + "1" * 5_000 + "}"):
        with pytest.raises(PatternError, match="invalid repeat count"):
            check("a" + count)
