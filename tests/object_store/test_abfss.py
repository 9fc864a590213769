"""Azure's storage over HTTPS, as `abfss://` always is; all else is tried over HTTP, by `abfs://`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from object_store import azure
from object_store.buckets import MissingError, conf
from object_store.kill import environment
from pipeline.orders import MAPPING, write_orders


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azure.Azure]:
    try:
        with azure.running_https(tmp_path_factory.mktemp("azure") / "store") as store:
            yield store
    except MissingError as error:
        pytest.skip(f"no azure here: {' '.join(str(error).split())}")


def test_tables_are_resolved_from_abfss_into_it(secure: azure.Azure, tmp_path: Path) -> None:
    for name, path in zip(("orders", "payments"), write_orders(tmp_path), strict=True):
        secure.write(f"{name}/{name}.csv", Path(path).read_bytes())
    inputs, out = [f"{secure.uri}/orders", f"{secure.uri}/payments", "--format", "csv"], f"{secure.uri}/result"
    command = ["resolve", *inputs, "--out", out, "--json", "--overwrite", "--master", "local[2]", *MAPPING]
    for _ in "new", "over it":
        ran = subprocess.run(
            [sys.executable, "-m", "abeyant", *command, *conf(secure)],
            capture_output=True, text=True, check=False, env=environment(),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        assert (told["result"]["completed"], told["result"]["expired"]) == (1, 2)
        assert secure.read(told["report"].removeprefix(f"{secure.uri}/"))
    names = {name.partition("/")[0] for name in secure.files("result")}
    assert len(names) == 2, "the marker and one run"
    marker = secure.read("result/abeyant-analysis.json") or b""
    assert azure.KEY.encode() not in marker
    assert b"fs.azure.account.key" in marker
