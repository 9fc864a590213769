"""Folders of the machine that made a page are not on it, whatever letters their names have."""

from __future__ import annotations

from abeyant.pages.places import redact_paths
from abeyant.pipeline.commands.command_line import redacted_command_line

FOLDER = "/home/joe smith/of a client, 100% 'private'"


def test_a_command_keeps_only_the_last_names_of_its_paths() -> None:
    words = [
        "resolve", f"{FOLDER}/orders.csv", "/tables/payments.csv", f"--out={FOLDER}/a result/", "--conf",
        f"spark.jars={FOLDER}/a.jar,/opt/b.jar", "--conf", f"spark.x=file://{FOLDER}/c", "--operation",
        "start=to_timestamp(day, 'yyyy/MM/dd')", "--event=at=a/b", "s3a://logs/2026/x", "logs/*/kafka-request.log*",
    ]  # fmt: skip
    shown = redact_paths({"command": redacted_command_line(words), "operations": words[1], "events": words[2]})
    assert shown["command"] == redacted_command_line(
        [
            "resolve", "orders.csv", "payments.csv", "--out=a result", "--conf", "spark.jars=a.jar,b.jar", "--conf",
            "spark.x=c", *words[8:],
        ]
    )  # fmt: skip
    assert (shown["operations"], shown["events"]) == ("orders.csv", "payments.csv")


def test_a_command_that_is_none_loses_what_looks_like_a_folder() -> None:
    assert redact_paths({"command": "a 'b /c/d/e"}) == {"command": "a 'b e"}
    assert redact_paths({"command": None}) == {"command": None}
