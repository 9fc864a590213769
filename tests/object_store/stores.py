"""The stores by name: what runs each over a folder while a block runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from object_store import azure, gateway, hdfs
from object_store.buckets import Bucket

STORES: Mapping[str, Callable[[Path], AbstractContextManager[Bucket]]] = {
    "s3": gateway.running,
    "hdfs": hdfs.running,
    "azure": azure.running,
}
