"""What the tests of this folder share. Each client is fetched when a test first asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clients import toolchains
from clients.java import Driver, Programs, compiled, driving

if TYPE_CHECKING:
    from abeyant.broker.genuine import Kafka


@pytest.fixture(scope="session")
def jars() -> Kafka:
    return toolchains.kafka_jars()


@pytest.fixture(scope="session")
def java(jars: Kafka) -> Iterator[Driver]:
    with driving(jars) as driver:
        yield driver


@pytest.fixture(scope="session")
def programs(jars: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return compiled(jars, tmp_path_factory.mktemp("classes"), "Copier", "Member")


@pytest.fixture(scope="session")
def go() -> Path:
    return toolchains.go_clients()


@pytest.fixture(scope="session")
def node() -> Path:
    return toolchains.node_clients()


@pytest.fixture(scope="session")
def confluent_javascript() -> Path:
    return toolchains.confluent_javascript()


@pytest.fixture(scope="session")
def rust() -> Path:
    return toolchains.rust_clients()
