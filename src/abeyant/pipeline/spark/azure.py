"""How a session reaches Azure's storage, for readers that are no part of Spark: by its `fs.azure` settings.

Spark's workers have no JVM that Python could ask. So what they need is taken from the session, once.
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
"""Arguments of Arrow's `AzureFileSystem`, by name. They may hold a key: never to be shown."""

_USUAL: Final = "core.windows.net"


def azure_settings(spark: SparkSession, uri: str) -> AzureSettings:
    """Return what `fs.azure.*`, or `fs.azure.*.ACCOUNT.dfs.core.windows.net`, says of a URI of `abfs` or `abfss`.

    The account's key, a fixed SAS token, or OAuth by a client's secret; and an endpoint with a port. Without these
    Arrow looks for credentials where Azure's own tools do: the environment, the machine's identity. Raises
    `AbeyantError` for a URI that names no container and account.
    """
    scheme, _, rest = uri.partition("://")
    container, at, host = rest.partition("/")[0].partition("@")
    account, dot, domain = host.partition(".")
    if not (container and at and account and dot):
        raise AbeyantError(f"cannot read {uri}: that is {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH")
    of = hadoop_settings(spark)

    def told(name: str) -> str:
        return of(f"fs.azure.{name}.{host}") or of(f"fs.azure.{name}")

    found: dict[str, Any] = {"account_name": account, **_credentials(told)}
    plain = scheme == "abfs" and told("always.use.https") == "false"
    endpoint, cloud = told("abfs.endpoint"), domain.partition(".")[2]
    for service in "blob", "dfs":
        if ":" in endpoint:
            found[f"{service}_storage_authority"] = endpoint
        elif cloud != _USUAL:
            found[f"{service}_storage_authority"] = f".{service}.{cloud}"
        if plain:
            found[f"{service}_storage_scheme"] = "http"
    return tuple(sorted(found.items()))


def _credentials(told: Callable[[str], str]) -> dict[str, str]:
    kind = told("account.auth.type").lower()
    key, token = told("account.key"), told("sas.fixed.token")
    if key and kind in ("", "sharedkey"):
        return {"account_key": key}
    if token and kind in ("", "sas"):
        return {"sas_token": token}
    client, secret = told("account.oauth2.client.id"), told("account.oauth2.client.secret")
    tenant = urlsplit(told("account.oauth2.client.endpoint")).path.strip("/").partition("/")[0]
    if client and secret and tenant and kind == "oauth":
        return {"client_id": client, "client_secret": secret, "tenant_id": tenant}
    return {}
