"""An S3 server for these tests, or a reason why there is none here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from object_store.gateway import Gateway, MissingError, running


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    try:
        begun = running(tmp_path_factory.mktemp("s3") / "gateway")
        found = begun.__enter__()
    except MissingError as error:
        pytest.skip(f"no S3 server here: {' '.join(str(error).split())}")
    try:
        yield found
    finally:
        begun.__exit__(None, None, None)
