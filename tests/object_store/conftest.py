"""The stores of these tests, an S3 server, HDFS and a server of Azure's blobs, or a reason why one is not here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from object_store.buckets import Bucket, MissingError
from object_store.stores import STORES


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Bucket]]:
    """Return a store by its name; each is started once, when first asked for."""
    found: dict[str, Bucket | MissingError] = {}

    def ask(name: str) -> Bucket:
        if name not in found:
            try:
                found[name] = stack.enter_context(STORES[name](tmp_path_factory.mktemp(name) / "store"))
            except MissingError as error:
                found[name] = error
        store = found[name]
        if isinstance(store, MissingError):
            pytest.skip(f"no {name} here: {' '.join(str(store).split())}")
        return store

    with ExitStack() as stack:
        yield ask


@pytest.fixture(params=STORES)
def bucket(request: pytest.FixtureRequest, opened: Callable[[str], Bucket]) -> Bucket:
    return opened(request.param)
