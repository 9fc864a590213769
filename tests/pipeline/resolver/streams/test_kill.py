"""O4 over kill -9: no outcome lost, none doubled. (More: `python -m pipeline.resolver.streams.kill --kills 20`.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.resolve_traces import some_traces
from pipeline.resolver.streams.kill import compare, kill_at_random_moments, write_input


@pytest.mark.slow
def test_o4_no_outcome_is_lost_or_doubled_when_the_driver_is_killed(tmp_path: Path) -> None:
    traces = some_traces(200, seed=9)
    write_input(tmp_path, traces, files=9, seed=9)
    kill_at_random_moments(tmp_path, "parquet", kills=2, seed=9)
    outcomes, lost, wrong = compare(tmp_path, "parquet", traces)
    assert outcomes == sum(len(trace.operations) for trace in traces)
    assert (lost, wrong) == (0, 0)
