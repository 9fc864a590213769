"""The registry of APIs and the files that handle them say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from abeyant.broker import requests
from abeyant.broker.wire.apis import APIS, BY_NAME, Api
from broker.conformance.record import load

FILES = Path(requests.__file__).parent


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_each_api_has_a_file_that_opens_with_its_key_and_versions(api: Api) -> None:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api.name).lower()
    assert api.module_name == words
    text = api.module.__doc__
    assert text.startswith(f"{api.name} (key {api.key}, versions {api.lowest}-{api.highest}): ")
    assert "\nKafka: `" in text, "it names Kafka's own code for it"


def test_there_is_no_other_file_beside_them() -> None:
    assert {path.stem for path in FILES.glob("*.py")} - {"__init__"} == {api.module_name for api in APIS}


def test_what_kafkas_brokers_answer_and_this_one_does_not_is_on_its_page() -> None:
    [(_, played)] = [one for one in load("api_versions").items() if one[0].startswith("every_api")]
    lacking = set(played[0]["said"]) - BY_NAME.keys()
    page = (Path(__file__).parents[2] / "docs" / "broker.md").read_text("utf-8")
    stated = (
        page.partition("\n## What is not there\n")[2].partition("three are not advertised: ")[2].partition(", as there")
    )
    assert sorted(re.findall(r"\w+", stated[0].replace(" and ", ", "))) == sorted(lacking)
    assert len(lacking) == 3
