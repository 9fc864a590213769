"""Check whether the extra `spark` is installed."""

from __future__ import annotations

from typing import Final

from abeyant.lazy import missing, needs

__all__ = ["BRINGS", "check_extra"]

BRINGS: Final = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "rich", "msgspec", "isal")


def check_extra(what: str) -> None:
    """Raise AbeyantError that says what to install for `what` if a package is missing. Import none of the packages.

    A missing Java is named only if something else is missing too: Spark Connect needs none, and starting a session
    looks for one anyway.
    """
    lacking = missing({"spark": BRINGS})
    if not lacking:
        return
    from abeyant.pipeline.spark.java import NoJavaError, find_java  # which is a program of its own (`-m`)

    try:
        find_java()
    except NoJavaError:
        lacking["java"] = ["Java"]
    raise needs(what, lacking)
