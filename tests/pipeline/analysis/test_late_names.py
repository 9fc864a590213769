"""Topics that only the end of a log names: operations have the names that a survey of the whole log gives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline import KafkaRequestLog
from abeyant.pipeline.analysis.written import WrittenLog
from abeyant.pipeline.request_log import tables as log_tables
from abeyant.pipeline.results.sink import ResultWriter
from pipeline.request_log.kafka_lines import fetch, line


def names(**topics: str) -> bytes:
    found = [{"topicId": topic_id, "name": name} for topic_id, name in topics.items()]
    return line("METADATA", {"topics": []}, {"topics": found})


def fetches(*ids: str) -> bytes:
    """A fetch of partition 3 of topics that it names by their ids."""
    topic = b'{"topicId":"t",'
    body = fetch(remote=0.0)
    begin = body.index(topic)
    end = body.index(b"}]}", begin) + 3
    several = b",".join(body[begin:end].replace(b'"t"', f'"{one}"'.encode()) for one in ids)
    return body[:begin] + several + body[end:]


@pytest.mark.parametrize(
    ("late", "fetched"),
    [
        ({"t": "orders", "u": "paid"}, [["u"], ["t", "u"], ["unnamed"], ["early"], []]),
        ({"t": "orders", "u": "orders"}, [["t", "u"], ["t"]]),  # made anew: one key, which has to be read again
        ({"early": "otherwise"}, [["early"]]),
    ],
)
def test_operations_are_those_of_a_whole_survey(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    late: dict[str, str],
    fetched: list[list[str]],
) -> None:
    log = tmp_path / "log" / "b" / "kafka-request.log"
    log.parent.mkdir(parents=True)
    first = [names(early="first"), line("HEARTBEAT", remote=0.0)]
    lines = [*first, *(fetches(*ids) for ids in fetched), *([names(**late)] if late else [])]
    log.write_bytes(b"".join(one + b"\n" for one in lines))
    found = []
    for most, block in ((1, len(first[0]) + 1), (1 << 20, 1 << 20)):
        monkeypatch.setattr(log_tables, "_BEGIN_BYTES", most)
        monkeypatch.setattr("abeyant.pipeline.request_log.files._BLOCK_BYTES", block)
        folder = tmp_path / str(most)
        folder.mkdir()
        result = cast("ResultWriter", SimpleNamespace(folder=folder, report=folder / "report.html"))
        written = KafkaRequestLog(spark, tmp_path / "log")
        assert written.begun.any_request
        assert (written.begun.topics == written.survey.topics) == (most > 1 or not late)
        told = WrittenLog(result, written)
        rows: list[dict[str, Any]] = pq.read_table(folder / "operations").sort_by("op_id").to_pylist()
        found.append((rows, told.times))
        told.close()
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert found[0] == found[1]
    keys = [watch["key"] for row in found[0][0] for watch in row["watches"] or ()]
    assert all(f"{topic_id}-3" not in keys for topic_id in late)
