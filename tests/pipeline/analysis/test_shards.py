"""Rows dealt to shards."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from abeyant.pipeline.analysis.packed import packed
from abeyant.pipeline.analysis.shards import Sharded, _shuffle, by_group
from abeyant.pipeline.spark.packed import unpack


def test_a_table_without_rows_is_dealt_to_no_shard() -> None:
    """As the keys of a log in which no operation names one."""

    def deal(table: pa.Table) -> Iterator[Sharded]:
        none = table.slice(0, 0)
        yield "none", none, by_group(none, ["kind"], 4)
        yield "all", table, by_group(table, ["kind"], 4)

    batch = pa.record_batch({"kind": ["FETCH", "PRODUCE", "FETCH"], "number": [1, 2, 3]})
    dealt = [row for found in _shuffle([batch], deal) for row in found.to_pylist()]
    assert {row["name"] for row in dealt} == {"all"}
    assert sorted(number for row in dealt for number in unpack(row["rows"])["number"].to_pylist()) == [1, 2, 3]


def test_a_shard_gets_no_texts_of_other_shards() -> None:
    def deal(table: pa.Table) -> Iterator[Sharded]:
        keys = table["key"].combine_chunks().dictionary_encode()
        yield "keys", pa.table({"key": keys, "number": table["number"]}), table["number"].to_numpy() % 100

    texts = [f"orders-{number}" for number in range(1000)]
    batch = pa.record_batch({"key": texts, "number": range(1000)})
    dealt = {row["shard"]: unpack(row["rows"]) for found in _shuffle([batch], deal) for row in found.to_pylist()}
    assert sorted(dealt) == list(range(100))
    for shard, rows in dealt.items():
        (keys,) = rows["key"].chunks
        assert keys.to_pylist() == texts[shard::100]
        assert len(keys.dictionary) == 10


def test_a_table_for_the_driver_has_no_texts_but_its_own() -> None:
    keys = pa.array([f"orders-{number}" for number in range(100_000)]).dictionary_encode()
    (sent,) = packed([("keys", pa.table({"key": keys}).slice(7, 2)), ("none", pa.table({"key": keys}).slice(0, 0))])
    rows = sent["rows"][0].as_py()
    assert unpack(rows)["key"].to_pylist() == ["orders-7", "orders-8"]
    assert len(rows) < 1000
