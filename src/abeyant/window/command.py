"""`abeyant broker --window`: the broker's command, with a window on its cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from abeyant.broker import command

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.window.serving import Window

__all__ = ["add_arguments"]


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the sub-command `broker` with `--window`. In its parsed arguments, `run` is the function to call."""
    parser = command.add_arguments(subparsers)
    parser.add_argument(
        "--window",
        nargs="?",
        type=int,
        const=0,
        metavar="PORT",
        help="show what waits, on a page at this port; without PORT or with 0, a free one",
    )
    parser.set_defaults(run=_run)
    return parser


def _run(args: argparse.Namespace) -> int:
    return command.run(args, {"window": _serve})


def _serve(cluster: Cluster, port: int, *, host: str, token: str | None) -> Window:
    from abeyant.window import serve

    return serve(cluster, host=host, port=port, token=token)
