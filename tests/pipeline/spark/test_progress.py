"""Progress that a person watches never runs backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.spark.job_progress import JobProgress

_SEEN = st.tuples(st.integers(0, 4), st.integers(0, 50), st.integers(1, 50))


@given(st.lists(_SEEN, max_size=40))
def test_it_never_goes_back(seen: list[tuple[int, int, int]]) -> None:
    progress, share, completed = JobProgress(), 0.0, 0
    assert progress.state() == (0.0, "")
    for stage, done, total in seen:
        progress.update(stage, min(done, total), total)
        now, words = progress.state()
        assert share <= now <= 1.0
        share = now
        assert completed <= int(words.partition("/")[0])
        completed = int(words.partition("/")[0])


def test_more_to_do_holds_the_bar_and_what_is_done_moves_it() -> None:
    progress = JobProgress()
    progress.update(1, 5, 10)
    assert progress.state() == (0.5, "5/10 tasks")
    progress.update(2, 0, 90)
    assert progress.state() == (0.5, "5/100 tasks")
    progress.update(2, 65, 90)
    assert progress.state() == (0.7, "70/100 tasks")
