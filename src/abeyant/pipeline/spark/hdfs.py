"""How a session's HDFS is reached over HTTP, for workers: Python has no JVM there, and Arrow needs Hadoop's libhdfs.

The name nodes' addresses are taken from the session, once, as Hadoop's own `webhdfs://` takes them.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.hadoop_files import hadoop_settings, hadoop_user

__all__ = ["hdfs_settings"]


def hdfs_settings(spark: SparkSession, uri: str) -> tuple[tuple[str, Any], ...]:
    """Return the arguments of `WebHdfs` for a URI; nothing where Arrow finds libhdfs, and reads HDFS by itself.

    Raises `AbeyantError` where the cluster asks for Kerberos and there is no libhdfs.
    """
    if _has_libhdfs():
        return ()
    told = hadoop_settings(spark)
    if told("hadoop.security.authentication") == "kerberos":
        raise AbeyantError(
            f"cannot read {uri}: with Kerberos that takes Hadoop's libhdfs, and Arrow finds none: set HADOOP_HOME or "
            "ARROW_LIBHDFS_DIR on all machines"
        )
    secure = told("dfs.http.policy") == "HTTPS_ONLY"
    scheme, key, port = (
        ("https", "dfs.namenode.https-address", 9871) if secure else ("http", "dfs.namenode.http-address", 9870)
    )
    name = _authority(uri) or _authority(told("fs.defaultFS"))
    nodes = [node.strip() for node in told(f"dfs.ha.namenodes.{name}").split(",") if node.strip()]
    given = [told(f"{key}.{name}.{node}") for node in nodes] or [told(f"{key}.{name}") or told(key)]
    addresses = []
    for address in given:
        host, _, its_port = address.rpartition(":")
        # Hadoop's default: on all of the name node's interfaces.
        host = host if host and host != "0.0.0.0" else name.partition(":")[0]
        addresses.append(f"{scheme}://{host}:{its_port or port}")
    return (("addresses", tuple(addresses)), ("user", _user(spark)))


def _authority(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[0]


def _user(spark: SparkSession) -> str:
    return getpass.getuser() if is_connect(spark) else hadoop_user(spark)


def _has_libhdfs() -> bool:
    """Return whether the library is where Arrow looks for it. Not tried: that starts a JVM, in this process."""
    hadoop = os.environ.get("HADOOP_HOME")
    given = [os.environ.get("ARROW_LIBHDFS_DIR"), hadoop, f"{hadoop}/lib/native" if hadoop else None]
    return any(folder and (Path(folder) / "libhdfs.so").exists() for folder in given)
