"""Markers, manifests and claims on each store: never missing, never two, while they are replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from object_store.buckets import Bucket
from object_store.kill import environment
from object_store.small_files import TURNS


def test_small_files_are_there_while_they_are_replaced(bucket: Bucket) -> None:
    root = f"{bucket.uri}/small"
    ran = subprocess.run(
        [sys.executable, "-m", "object_store.small_files", root],
        input=json.dumps(dict(bucket.settings)), capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert (ran.returncode, "Error" in ran.stderr) == (0, False), ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    texts = told["replaced"]
    assert None not in texts
    assert "" not in texts
    assert [int(text) for text in texts] == sorted(int(text) for text in texts)
    assert texts[-1] == str(TURNS - 1)
    for first, *there in told["firsts"]:
        assert there == [first], "one was the first, and what it wrote is there"
    if told["halves"] is not None:
        old, *rest = told["halves"]
        assert old == "old", "what stands beside counts when the other is gone"
        assert rest == ["newest", ["a.json"], "new", "newest", ["b.json"]]
    *others, left = told["claimed"]
    assert len(others) == 1, others
    assert others[0].startswith(f"{root} is being written by process ")
    assert others[0].endswith(f" on {os.uname().nodename},")
    assert left == []
