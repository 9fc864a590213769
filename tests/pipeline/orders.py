"""Orders and payments as two CSV files, with what goes wrong in such: a tie, a copy, a time that is none."""

from __future__ import annotations

from pathlib import Path

ORDERS = """order_id,ordered_at
1,2026-01-01T10:00:00Z
2,2026-01-01T10:00:00Z
3,2026-01-01T10:00:00Z
3,2026-01-01T11:00:00Z
4,yesterday
"""
PAYMENTS = """order_id,paid_at
1,2026-01-01T10:15:00Z
2,2026-01-01T10:15:00.001Z
2,
"""
MAPPING = [
    *("--operation", "op_id=order_id", "--operation", "key=order_id", "--operation", "start=ordered_at"),
    *("--operation", "timeout_ms=15*60*1000", "--event", "key=order_id", "--event", "at=paid_at"),
]


def write_orders(folder: Path) -> tuple[str, str]:
    """Write both files, one under a name that a pattern could be."""
    orders, payments = folder / "the orders [1].csv", folder / "payments.csv"
    orders.write_text(ORDERS)
    payments.write_text(PAYMENTS)
    return str(orders), str(payments)
