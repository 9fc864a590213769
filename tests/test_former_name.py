"""What the project wrote under its former name is refused in one line that says so, wherever it is met."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from abeyant.broker.log.directory import MARK, DataDirectory
from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.former import former
from abeyant.pipeline import read_result
from abeyant.pipeline.commands.pending import _stored_checkpoint
from abeyant.pipeline.commands.stream_run.description import DESCRIPTION, check
from abeyant.pipeline.report.analysis import ReportError, read_analysis
from abeyant.pipeline.resolver.streams.listed_batches import write_listed
from abeyant.pipeline.resolver.streams.state import ShardState, StateError, decode_shard, encode_shard
from abeyant.pipeline.results.directory import MARKER, check_target
from abeyant.pipeline.results.leases.local import check_free, leased, result_lease, stream_lease
from abeyant.pipeline.results.local import LocalFolder
from abeyant.pipeline.results.manifests import batch_manifest, manifest, read_manifest
from abeyant.pipeline.results.registry import sink_of
from pipeline.report import samples
from pipeline.resolver.streams.cuts import how

LOG = Path(__file__).parent / "data" / "kafka-request-debug.log.gz"
SAID = f"was written under the project's former name, {former('abeyant')}, and is not read: "


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(AbeyantError, match=SAID) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result as a command left it under the former name."""
    out = tmp_path / "result"
    (out / "operations").mkdir(parents=True)
    (out / former(MARKER)).write_text(json.dumps({"tool": former("abeyant"), "tables": ["operations"]}))
    return out


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A stream's result and checkpoint, likewise."""
    out = tmp_path / "stream"
    (out / "checkpoint" / "state").mkdir(parents=True)
    described = {"tool": former("abeyant stream"), "checkpoint": str(out / "checkpoint")}
    (out / former(DESCRIPTION)).write_text(json.dumps(described))
    return out


@pytest.mark.parametrize("command", ["analyze", "replay", "model"])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_no_command_writes_over_a_result(
    command: str, overwrite: list[str], result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(LOG), "--out", str(result), *overwrite]) == 2
    mend = "name another place, or remove it and run this again"
    assert capsys.readouterr().err == f"abeyant: error: {result} {SAID}{mend}\n"
    assert (result / former(MARKER)).exists()


def test_nor_do_resolve_and_stream(result: Path, stream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ["examples/data/shop/orders.csv", "examples/data/shop/payments.csv"]
    tables = [str(Path(__file__).parents[1] / table) for table in tables]
    for engine in ("tables", "spark"):
        assert main(["resolve", *tables, "--out", str(result), "--overwrite", "--engine", engine]) == 2
        assert SAID in capsys.readouterr().err
    assert main(["stream", *tables, "--out", str(stream)]) == 2
    mend = "start a new stream, with another --out and checkpoint"
    assert capsys.readouterr().err == f"abeyant: error: {stream} {SAID}{mend}\n"


def test_replay_reads_no_result(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(result), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"abeyant: error: {result} {SAID}analyze its log anew\n"


def test_pending_reads_no_stream(stream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", str(stream)]) == 2
    assert f"{stream} {SAID}start a new stream" in capsys.readouterr().err


def test_a_report_is_made_of_no_analysis(tmp_path: Path) -> None:
    written = samples.write(tmp_path / "tables", samples.tables(samples.operations()))
    (written / former(MARKER)).write_text("{}")
    refused(lambda: read_analysis(written))
    assert issubclass(ReportError, AbeyantError)


@pytest.mark.parametrize("place", [result_lease, stream_lease])
def test_a_claim_is_respected(place: Callable[[Path], Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    claim = place(out)
    before = claim.with_name(former(claim.name))
    before.touch()
    mend = f"end the process that writes there; if there is none, remove {before}"
    assert refused(lambda: check_free(claim, out)) == f"{out} {SAID}{mend}"
    refused(lambda: leased(claim, out).__enter__())
    before.unlink()
    check_target(out, overwrite=False)


def test_a_manifest_is_none() -> None:
    text = manifest({"batch": 0}, {}).replace('"abeyant"', f'"{former("abeyant")}"')
    assert refused(lambda: read_manifest(text, "s3a://b/0.json")).startswith("s3a://b/0.json ")


def test_a_shard_of_a_checkpoint_is_none() -> None:
    version, state = encode_shard(ShardState.first(), how(shards=4))
    assert version == 2
    said = refused(lambda: decode_shard(1, state, how(shards=4)))
    assert said == f"the checkpoint {SAID}begin a new checkpoint, and another place for the result"
    with pytest.raises(StateError):
        decode_shard(1, state, None)


def test_on_a_store_nothing_is_read_or_replaced(spark: SparkSession, result: Path, stream: Path) -> None:
    refused(lambda: sink_of(result.as_uri()).table(spark, overwrite=True).__enter__())
    assert (result / former(MARKER)).exists()
    for place in (result, stream, result.as_uri()):
        refused(lambda place=place: read_result(spark, place))  # type: ignore[misc]
    refused(lambda: _stored_checkpoint(spark, stream.as_uri()))
    refused(lambda: check(LocalFolder(stream), stream, str(stream / "checkpoint"), {}, begun=True))


def test_a_stream_of_manifests_is_not_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    batch = tmp_path / batch_manifest(0)
    batch.parent.mkdir()
    batch.write_text(manifest({"batch": 0}, {}).replace('"abeyant"', f'"{former("abeyant")}"'))
    refused(lambda: read_result(spark, tmp_path))
    refused(lambda: write_listed(spark.range(1), 0, tmp_path.as_uri(), str(uuid4())))


def test_a_data_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / former(MARK)).write_text('{"format": 1}')
    assert refused(lambda: DataDirectory(tmp_path)) == f"{tmp_path} {SAID}name another directory"
    assert [file.name for file in tmp_path.iterdir()] == [former(MARK)]
