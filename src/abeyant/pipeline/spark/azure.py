"""Read a session's `fs.azure` settings, for Arrow's readers in Python workers.

Workers have no JVM, so the driver reads the settings once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.hadoop_files import hadoop_settings

__all__ = ["AzureSettings", "azure_settings"]

AzureSettings = tuple[tuple[str, Any], ...]
"""Arguments of Arrow's `AzureFileSystem`, by name. They may hold a key: never show them."""

_USUAL: Final = "core.windows.net"


def azure_settings(spark: SparkSession, uri: str) -> AzureSettings:
    """Return the settings for a URI of `abfs` or `abfss`: `fs.azure.*`, or `fs.azure.*.ACCOUNT.dfs.core.windows.net`.

    The settings are credentials (the account's key, a fixed SAS token, or OAuth by a client's secret) and an endpoint
    with a port. Without credentials, Arrow looks where Azure's own tools look: in the environment, and for the
    machine's identity. Raises `AbeyantError` for a URI without container and account.
    """
    scheme, _, rest = uri.partition("://")
    container, at, host = rest.partition("/")[0].partition("@")
    account, dot, domain = host.partition(".")
    if not (container and at and account and dot):
        raise AbeyantError(f"cannot read {uri}: write it as {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH")
    lookup = hadoop_settings(spark)

    def setting(name: str) -> str:
        return lookup(f"fs.azure.{name}.{host}") or lookup(f"fs.azure.{name}")

    arguments: dict[str, Any] = {"account_name": account, **_credentials(setting)}
    plain = scheme == "abfs" and setting("always.use.https") == "false"
    endpoint, cloud = setting("abfs.endpoint"), domain.partition(".")[2]
    for service in "blob", "dfs":
        if ":" in endpoint:
            arguments[f"{service}_storage_authority"] = endpoint
        elif cloud != _USUAL:
            arguments[f"{service}_storage_authority"] = f".{service}.{cloud}"
        if plain:
            arguments[f"{service}_storage_scheme"] = "http"
    return tuple(sorted(arguments.items()))


def _credentials(setting: Callable[[str], str]) -> dict[str, str]:
    kind = setting("account.auth.type").lower()
    key, token = setting("account.key"), setting("sas.fixed.token")
    if key and kind in ("", "sharedkey"):
        return {"account_key": key}
    if token and kind in ("", "sas"):
        return {"sas_token": token}
    client, secret = setting("account.oauth2.client.id"), setting("account.oauth2.client.secret")
    tenant = urlsplit(setting("account.oauth2.client.endpoint")).path.strip("/").partition("/")[0]
    if client and secret and tenant and kind == "oauth":
        return {"client_id": client, "client_secret": secret, "tenant_id": tenant}
    return {}
