"""Convert a session's `fs.s3a` settings to arguments of Arrow's file system, for readers in Python workers.

Workers have no JVM, so the driver reads the settings once.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.hadoop_files import hadoop_settings

__all__ = ["S3Settings", "s3_settings"]

S3Settings = tuple[tuple[str, Any], ...]
"""Arguments of Arrow's `S3FileSystem`, by name. They may hold a key: never show them."""

_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_TEXTS: Final = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}


def s3_settings(spark: SparkSession, bucket: str) -> S3Settings:
    """Return the endpoint, region, path style and keys of `fs.s3a.*`, or `fs.s3a.bucket.BUCKET.*`.

    Without keys, Arrow looks where Amazon's own tools look: in the environment, the profile and the machine's role. On
    Spark Connect only `spark.hadoop.*` is known, not the server's `core-site.xml`.
    """
    lookup = hadoop_settings(spark)

    def setting(name: str) -> str:
        return lookup(f"fs.s3a.bucket.{bucket}.{name}") or lookup(f"fs.s3a.{name}")

    arguments: dict[str, Any] = {argument: setting(name) for name, argument in _TEXTS.items() if setting(name)}
    if _ANONYMOUS in setting("aws.credentials.provider"):
        arguments["anonymous"] = True
    endpoint = setting("endpoint")
    if endpoint and endpoint != "s3.amazonaws.com":
        scheme, separator, host = endpoint.partition("://")
        plain = setting("connection.ssl.enabled") == "false"
        arguments["scheme"] = scheme if separator else "http" if plain else "https"
        arguments["endpoint_override"] = (host if separator else endpoint).rstrip("/")
        # Arrow's and Hadoop's defaults differ where an endpoint is given.
        arguments["force_virtual_addressing"] = setting("path.style.access") != "true"
        arguments.setdefault("region", "us-east-1")
    return tuple(sorted(arguments.items()))
