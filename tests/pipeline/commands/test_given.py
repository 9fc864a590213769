"""What a result repeats of the command line."""

from __future__ import annotations

import shlex

import pytest

from abeyance.pipeline.commands.given import given

HIDDEN = "(hidden)"


def test_what_is_no_secret_can_be_typed_again() -> None:
    """Blanks, columns that speak of tokens and settings without secrets stay as they are."""
    words = ["resolve", "my orders.csv", "--operation", "key=access_token", "--conf", "spark.ui.enabled=false"]
    assert shlex.split(given(words)) == ["abeyance", *words]


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.fs.s3a.secret.key=wJalr=XUtn",
        "spark.hadoop.fs.s3a.access.key=AKIA7",
        "spark.hadoop.fs.s3a.session.token=FwoG",
        "spark.driver.defaultJavaOptions=-Djavax.net.ssl.trustStorePassword=changeit",
    ],
)
@pytest.mark.parametrize("form", [["--conf", "{}"], ["--conf={}"]], ids=["apart", "in one"])
def test_a_secret_setting_is_named_and_hidden(setting: str, form: list[str]) -> None:
    """The name of the setting stays: one sees what has to be given again."""
    name, _, value = setting.partition("=")
    said = shlex.split(given(["analyze", "s3a://logs/", *(part.format(setting) for part in form)]))
    assert said[-1].removeprefix("--conf=") == f"{name}={HIDDEN}"
    assert value not in " ".join(said)


def test_a_password_in_a_uri_is_hidden() -> None:
    """The host and the path stay."""
    assert given(["analyze", "s3a://me:pass@logs/day=1"]) == f"abeyance analyze 's3a://{HIDDEN}@logs/day=1'"
