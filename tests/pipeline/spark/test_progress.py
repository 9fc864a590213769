"""Progress that a person watches never runs backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.spark.watching import Far

_SEEN = st.tuples(st.integers(0, 4), st.integers(0, 50), st.integers(1, 50))


@given(st.lists(_SEEN, max_size=40))
def test_it_never_goes_back(seen: list[tuple[int, int, int]]) -> None:
    far, share, completed = Far(), 0.0, 0
    assert far.told() == (0.0, "")
    for stage, done, total in seen:
        far.saw(stage, min(done, total), total)
        now, words = far.told()
        assert share <= now <= 1.0
        share = now
        assert completed <= int(words.partition("/")[0])
        completed = int(words.partition("/")[0])


def test_more_to_do_holds_the_bar_and_what_is_done_moves_it() -> None:
    far = Far()
    far.saw(1, 5, 10)
    assert far.told() == (0.5, "5/10 tasks")
    far.saw(2, 0, 90)
    assert far.told() == (0.5, "5/100 tasks")
    far.saw(2, 65, 90)
    assert far.told() == (0.7, "70/100 tasks")
