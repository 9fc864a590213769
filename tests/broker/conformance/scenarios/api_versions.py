"""ApiVersions: what a broker can do, also when it is asked in a version that it does not know."""

from __future__ import annotations

import struct

from abeyant.broker.wire.apis import BY_NAME

from ..messages import API_KEYS, kio_versions, response
from ..scenario import Stage, scenario, table

WITH_PLUGIN = {"GetTelemetrySubscriptions", "PushTelemetry"}
"""Genuine Kafka has these only with a plugin; see telemetry.py."""

CLIENT = {"client_software_name": "conformance", "client_software_version": "1.0"}


@scenario("ApiVersions", at=(0, 1, 2, 3, 4))
def what_is_there(stage: Stage) -> None:
    version = stage.version("ApiVersions")
    said = stage.do("ApiVersions", CLIENT, version=version)
    rows = [
        [api, row["min_version"], min(row["max_version"], kio_versions(api)[-1])]
        for api in sorted(BY_NAME.keys() - WITH_PLUGIN)
        for row in said["api_keys"]
        if row["api_key"] == API_KEYS[api]
    ]
    stage.note("error, throttle time", [said["error_code"], said.get("throttle_time")])
    stage.note("versions", rows)


@scenario("ApiVersions", at=(4,))
def every_api(stage: Stage) -> None:
    names = {key: api for api, key in API_KEYS.items()}
    said = stage.do("ApiVersions", CLIENT, version=stage.version("ApiVersions"))
    found = {names.get(row["api_key"], str(row["api_key"])) for row in said["api_keys"]}
    stage.note("names", sorted(found - WITH_PLUGIN))


@scenario("ApiVersions", at=(2, 3, 4))
def supported_features(stage: Stage) -> None:
    said = stage.do("ApiVersions", CLIENT, version=stage.version("ApiVersions"))
    stage.note("supported features", said.get("supported_features"))


@table("ApiVersions", at=(3, 4), share=("share.version",), streams=("streams.version",), others=(None,))
def finalized_features(stage: Stage, name: str | None) -> None:
    """Of groups that ours does not have, and of all others."""
    said = stage.do("ApiVersions", CLIENT, version=stage.version("ApiVersions"))
    of_groups = ("share.version", "streams.version")
    rows = said["finalized_features"]
    chosen = [row for row in rows if (row["name"] not in of_groups if name is None else row["name"] == name)]
    stage.note("finalized features", chosen)


@scenario()
def a_version_to_come(stage: Stage) -> None:
    """The answer is in version 0, with an error and what there is."""
    connection = stage.connect()
    connection.send_frame(struct.pack(">hhih", API_KEYS["ApiVersions"], 99, 7, -1) + b"\0")
    correlation_id, said = response("ApiVersions", 0, connection.receive_frame())
    rows = [row for row in said["api_keys"] if row["api_key"] == API_KEYS["ApiVersions"]]
    stage.note("ApiVersions v99", [correlation_id, said["error_code"], rows])


@table(
    "ApiVersions",
    at=(3, 4),
    no_name=("", "1.0"),
    no_version=("name", ""),
    spaces_in_name=("a name", "1.0"),
    starts_with_dash=("-name", "1.0"),
    ends_with_dot=("name", "1.0."),
    dots_and_dashes=("apache-kafka.java", "4.0-x.1"),
)
def client_software(stage: Stage, name: str, version: str) -> None:
    body = {"client_software_name": name, "client_software_version": version}
    said = stage.do("ApiVersions", body, version=stage.version("ApiVersions"))
    stage.note("error", said["error_code"])
