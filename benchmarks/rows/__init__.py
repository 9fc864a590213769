"""What we measure: one row a question."""

from __future__ import annotations

from benchmarks.rows.catalogue import ROWS, Row

__all__ = ["ROWS", "Row"]
