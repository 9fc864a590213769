"""What the extra `spark` brings, and whether it is installed."""

from __future__ import annotations

from typing import Final

from abeyant.lazy import missing, needs

__all__ = ["BRINGS", "check_extra"]

BRINGS: Final = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "rich", "msgspec")


def check_extra(what: str, *, report: bool = False) -> None:
    """Raise AbeyantError, saying what to install for `what`, where the extra is missing. Imports nothing of it.

    With `report` the extra of that name is needed as well. A missing Java is named beside others only: there may be
    no need for one (Spark Connect), and Spark's session looks for it.
    """
    lacking = missing({"spark": BRINGS, **({"report": ("plotly",)} if report else {})})
    if not lacking:
        return
    from abeyant.pipeline.spark.java import NoJavaError, find_java  # which is a program of its own (`-m`)

    try:
        find_java()
    except NoJavaError:
        lacking["java"] = ["Java"]
    raise needs(what, lacking)
