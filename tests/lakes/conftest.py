"""PySpark and jars of both formats for these tests, or a reason why they are not here."""

from __future__ import annotations

import pytest

from lakes.environment import MissingError, environment, fetched


@pytest.fixture(scope="session")
def lake_environment() -> dict[str, str]:
    try:
        fetched()
        return environment()
    except MissingError as error:
        pytest.skip(f"no lake here: {' '.join(str(error).split())}")
