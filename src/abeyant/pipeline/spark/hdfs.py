"""Read the session's settings for HDFS over HTTP, for workers: they have no JVM, and Arrow needs Hadoop's libhdfs.

The driver reads the name nodes' addresses once, from the settings that Hadoop's own `webhdfs://` uses.
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
    """Return the arguments of `WebHdfs` for a URI; () if Arrow finds libhdfs and reads HDFS itself.

    Raises `AbeyantError` if the cluster requires Kerberos and libhdfs is missing.
    """
    if _has_libhdfs():
        return ()
    setting = hadoop_settings(spark)
    if setting("hadoop.security.authentication") == "kerberos":
        raise AbeyantError(
            f"cannot read {uri}: Kerberos requires Hadoop's libhdfs, which Arrow does not find: set HADOOP_HOME or "
            "ARROW_LIBHDFS_DIR on all machines"
        )
    secure = setting("dfs.http.policy") == "HTTPS_ONLY"
    scheme, key, port = (
        ("https", "dfs.namenode.https-address", 9871) if secure else ("http", "dfs.namenode.http-address", 9870)
    )
    name = _authority(uri) or _authority(setting("fs.defaultFS"))
    nodes = [node.strip() for node in setting(f"dfs.ha.namenodes.{name}").split(",") if node.strip()]
    configured = [setting(f"{key}.{name}.{node}") for node in nodes] or [setting(f"{key}.{name}") or setting(key)]
    addresses = []
    for address in configured:
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
    """Return whether libhdfs is where Arrow looks for it. Loading libhdfs would start a JVM in this process."""
    hadoop = os.environ.get("HADOOP_HOME")
    folders = [os.environ.get("ARROW_LIBHDFS_DIR"), hadoop, f"{hadoop}/lib/native" if hadoop else None]
    return any(folder and (Path(folder) / "libhdfs.so").exists() for folder in folders)
