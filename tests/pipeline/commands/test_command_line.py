"""What a result repeats of the command line."""

from __future__ import annotations

import shlex

import pytest

from abeyant.pipeline.commands.command_line import redacted_command_line

HIDDEN = "(hidden)"


def test_what_is_no_secret_can_be_typed_again() -> None:
    """Blanks, columns that speak of tokens and settings without secrets stay as they are."""
    words = ["resolve", "my orders.csv", "--operation", "key=access_token", "--conf", "spark.ui.enabled=false"]
    assert shlex.split(redacted_command_line(words)) == ["abeyant", *words]


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.fs.s3a.secret.key=wJalr=XUtn",
        "spark.hadoop.fs.s3a.access.key=AKIA7",
        "spark.hadoop.fs.s3a.session.token=FwoG",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net=bm90",
        "spark.hadoop.fs.azure.sas.container.account.blob.core.windows.net=sig",
        "spark.hadoop.fs.gs.auth.service.account.private.key=MIIE",
        "spark.driver.defaultJavaOptions=-Djavax.net.ssl.trustStorePassword=changeit",
    ],
)
@pytest.mark.parametrize("form", [["--conf", "{}"], ["--conf={}"]], ids=["apart", "in one"])
def test_a_secret_setting_is_named_and_hidden(setting: str, form: list[str]) -> None:
    """The name of the setting stays: one sees what has to be given again."""
    name, _, value = setting.partition("=")
    said = shlex.split(redacted_command_line(["analyze", "s3a://logs/", *(part.format(setting) for part in form)]))
    assert said[-1].removeprefix("--conf=") == f"{name}={HIDDEN}"
    assert value not in " ".join(said)


def test_a_password_in_a_uri_is_hidden() -> None:
    """The host and the path stay."""
    assert (
        redacted_command_line(["analyze", "s3a://me:pass@logs/day=1"]) == f"abeyant analyze 's3a://{HIDDEN}@logs/day=1'"
    )


@pytest.mark.parametrize("form", [["--master", "{}"], ["--master={}"]], ids=["apart", "in one"])
def test_the_token_of_a_connect_server_is_hidden(form: list[str]) -> None:
    words = [part.format("sc://here:15002/;use_ssl=true;token=FwoG;user_id=me") for part in form]
    said = shlex.split(redacted_command_line(["analyze", "logs", *words]))
    assert said[-1].removeprefix("--master=") == f"sc://here:15002/;use_ssl=true;token={HIDDEN};user_id=me"
