"""Small files of a store that renames a file only to a free name: a local path is one, as Azure's storage is.

(The same on real stores: `tests/object_store/test_small_files.py`.)
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline.results.leases import store as leases
from abeyant.pipeline.results.leases.store import StoreLease
from abeyant.pipeline.spark.store import Store
from object_store.small_files import TURNS, claimed, halves, replaced


@pytest.mark.slow
def test_a_reader_meets_the_old_file_or_the_new_one(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, f"file://{tmp_path}/a store")
    texts = [int(str(text)) for text in replaced(store)]
    assert texts == sorted(texts)
    assert texts[-1] == TURNS - 1
    assert store.names("") == ["marker.json"]


def test_what_a_kill_leaves_between_two_steps_is_read_and_mended(spark: SparkSession, tmp_path: Path) -> None:
    found = halves(Store(spark, f"file://{tmp_path}"))
    assert found == ["old", "newest", ["a.json"], "new", "newest", ["b.json"]]


def test_a_claim_keeps_others_out_while_it_is_renewed(spark: SparkSession, tmp_path: Path) -> None:
    *refusals, left = claimed(Store(spark, f"file://{tmp_path}"))
    # On a busy machine every look may meet a renewal, and the owner is not known then; it is kept out all the same.
    assert refusals
    assert all("is being written by" in str(refusal) for refusal in refusals)
    assert left == []


def test_a_claim_that_is_given_up_does_not_come_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up while its thread is about to write it anew."""
    renewing, go_on, renewed = threading.Event(), threading.Event(), threading.Event()

    class Slow(Store):
        def renew(self, name: str, text: str) -> None:
            renewing.set()
            go_on.wait()
            super().renew(name, text)
            renewed.set()

    monkeypatch.setattr(leases, "_RENEW_SECONDS", 0.001)
    store = Slow(spark, f"file://{tmp_path}")
    claim = StoreLease(store, "run")
    assert renewing.wait(60)
    closing = threading.Thread(target=claim.close)
    closing.start()
    closing.join(0.2)
    go_on.set()
    closing.join()
    assert renewed.wait(60)
    assert store.names("claims") == []
