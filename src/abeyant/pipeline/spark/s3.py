"""How a session reaches S3, for readers that are no part of Spark: its `fs.s3a` settings, as Arrow has them.

Spark's workers have no JVM that Python could ask. So what they need is taken from the session, once.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.hadoop_files import hadoop_settings

__all__ = ["S3Settings", "s3_settings"]

S3Settings = tuple[tuple[str, Any], ...]
"""Arguments of Arrow's `S3FileSystem`, by name. They may hold a key: never to be shown."""

_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_TEXTS: Final = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}


def s3_settings(spark: SparkSession, bucket: str) -> S3Settings:
    """Return what `fs.s3a.*`, or `fs.s3a.bucket.BUCKET.*`, says: endpoint, region, style of paths, keys.

    Without keys Arrow looks for them where Amazon's own tools do: the environment, the profile, the machine's role. On
    Spark Connect only settings of Spark's are known, not those of the server's `core-site.xml`.
    """
    of = hadoop_settings(spark)

    def told(name: str) -> str:
        return of(f"fs.s3a.bucket.{bucket}.{name}") or of(f"fs.s3a.{name}")

    found: dict[str, Any] = {ours: told(name) for name, ours in _TEXTS.items() if told(name)}
    if _ANONYMOUS in told("aws.credentials.provider"):
        found["anonymous"] = True
    endpoint = told("endpoint")
    if endpoint and endpoint != "s3.amazonaws.com":
        scheme, separator, host = endpoint.partition("://")
        plain = told("connection.ssl.enabled") == "false"
        found["scheme"] = scheme if separator else "http" if plain else "https"
        found["endpoint_override"] = (host if separator else endpoint).rstrip("/")
        # Arrow's default for an endpoint that is named, and Hadoop's, differ.
        found["force_virtual_addressing"] = told("path.style.access") != "true"
        found.setdefault("region", "us-east-1")
    return tuple(sorted(found.items()))
