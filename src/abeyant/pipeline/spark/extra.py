"""What the extra `spark` brings, and whether it is there."""

from __future__ import annotations

from typing import Final

from abeyant.lazy import check_installed

__all__ = ["BRINGS", "check_extra"]

BRINGS: Final = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "rich")


def check_extra(what: str) -> None:
    """Raise AbeyantError, saying what to install for `what`, where the extra is not there. Imports nothing of it."""
    check_installed(what, "spark", BRINGS)
