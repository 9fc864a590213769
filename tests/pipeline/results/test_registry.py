"""Every kind of sink: which places are its own, and what is known of it before Spark runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from abeyant.pipeline.results.registry import SINKS, sink_of

NO_SPARK: Any = None


@pytest.mark.parametrize(
    ("place", "kind"),
    [("s3a://shop/out", "StoreSink"), ("file:///out", "StoreSink"), ("out", "LocalSink"), ("zip:out", "LocalSink")],
)
def test_a_place_says_what_it_is(place: str, kind: str) -> None:
    sink = sink_of(place)
    assert type(sink).__name__ == kind
    assert type(sink) in SINKS
    assert str(sink.below("summary").place) == f"{sink.place}/summary"


def test_a_path_is_absolute_and_its_folder_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = sink_of("a/../out")
    assert sink.place == Path(os.path.realpath(tmp_path)) / "out"
    folder = sink.describe()
    assert folder is not None
    folder.put("note.json", "{}")
    assert (folder.read("note.json"), folder.read("other.json"), folder.names("")) == ("{}", None, ["note.json"])
    assert sink_of("s3a://shop/out").describe() is None


def test_outcomes_are_those_of_the_batches_from_one_on_in_their_order(tmp_path: Path) -> None:
    for batch in (2, 10, 9, 1):
        (tmp_path / "outcomes" / f"batch={batch}").mkdir(parents=True)
        (tmp_path / "outcomes" / f"batch={batch}" / "part-0.parquet").touch()
    found = [file.parent.name for file in sink_of(tmp_path).outcomes(NO_SPARK, 2)]
    assert found == ["batch=2", "batch=9", "batch=10"]


def test_to_know_a_place_takes_no_pyspark() -> None:
    program = "import sys; sys.modules['pyspark'] = None; from abeyant.pipeline.results import registry"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
