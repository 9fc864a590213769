"""Open files of `s3a`, `abfs`, `abfss` and `hdfs` in Python workers, which have no JVM, with the session's settings.

The driver reads the settings once (`reach_of`), and workers open files with them (`system_of`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from abeyant.pipeline.spark.web_hdfs import WebHdfs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AZURE", "HDFS", "S3A", "Reach", "reach_of", "system_of"]

S3A: Final = "s3a://"
HDFS: Final = "hdfs://"
AZURE: Final = ("abfs://", "abfss://")

Reach = tuple[tuple[str, Any], ...]
"""Arguments of `WebHdfs` or of a file system of Arrow, by name. They may hold a secret key: never show them."""


def reach_of(spark: SparkSession, uri: str) -> Reach:
    """Return the file system's arguments for workers that read this URI, from the session's settings.

    The arguments are empty for `hdfs` if Arrow finds Hadoop's libhdfs. Raises `AbeyantError` for an Azure URI that
    names no account, and for Kerberos without libhdfs.
    """
    from abeyant.pipeline.spark.azure import azure_settings
    from abeyant.pipeline.spark.hdfs import hdfs_settings
    from abeyant.pipeline.spark.s3 import s3_settings

    if uri.startswith(S3A):
        return s3_settings(spark, uri.removeprefix(S3A).partition("/")[0])
    return hdfs_settings(spark, uri) if uri.startswith(HDFS) else azure_settings(spark, uri)


def system_of(uri: str, reach: Reach) -> tuple[Any, str]:
    """Return the file system of a URI, and the path within it. Other schemes must be known to Arrow."""
    from pyarrow import fs

    if uri.startswith(S3A):
        return _made("S3FileSystem", reach), uri.removeprefix(S3A)
    if uri.startswith(HDFS) and reach:
        return WebHdfs(**dict(reach)), f"/{uri.removeprefix(HDFS).partition('/')[2]}"
    if uri.startswith(AZURE) and reach:
        container, _, rest = uri.partition("://")[2].partition("@")
        return _made("AzureFileSystem", reach), f"{container}/{rest.partition('/')[2]}"
    found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
    return found


@lru_cache(maxsize=16)
def _made(kind: str, reach: Reach) -> Any:
    """Return an instance of Arrow's file system class `kind`. It is cached, as each opens its own connections."""
    from pyarrow import fs

    return getattr(fs, kind)(**dict(reach))
