"""`abeyant broker`: a Kafka-compatible cluster in this process, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from abeyant.broker.security.protocol import PROTOCOLS
from abeyant.ending import add_json, print_json, standard_output
from abeyant.errors import AbeyantError
from abeyant.lazy import missing, needs

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

__all__ = ["add_arguments", "run"]

_DESCRIPTION: Final = """\
Run a Kafka-compatible cluster for development and tests. All brokers are in
this process: no JVM, ready in a fraction of a second. Replication and
time-outs are real: acks=all, long polls, rebalances, DeleteRecords.

Records are kept in memory, or below --data. Stop it with Ctrl-C. It listens on
this machine only; --host changes that.
"""
_EXAMPLES: Final = """\
examples:
  abeyant broker
      one broker at 127.0.0.1:9092
  abeyant broker --brokers 3 --data kafka-data
      three brokers at 9092 to 9094, with their data on disk
  abeyant broker --brokers 3 --topic orders:6 --set min.insync.replicas=2
      create a topic of six partitions, and change a setting by Kafka's name
  abeyant broker --brokers 3 --port 0 --control
      for tests in any language: faults, pauses and topics over HTTP
  abeyant broker --brokers 3 --window 8090 --clock held
      see what waits at http://127.0.0.1:8090, and step through it
  abeyant broker --request-log logs
      write request logs; read them with: abeyant analyze logs --out result
"""
T = TypeVar("T")


class RunningServer(Protocol):
    """A running HTTP server of the cluster: the control API or the window. Leaving its `with` block stops it."""

    url: str

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: Any) -> None: ...


class Serve(Protocol):
    """A function that starts an HTTP server for the cluster on a port (0: a free port)."""

    def __call__(self, cluster: Cluster, port: int, *, host: str, token: str | None) -> RunningServer: ...


_DEFAULTS: Final = ("1", "-1")  # partitions and replicas; -1 for the default of `create_topic`
_SETTING: Final = "NAME=VALUE"
_USER: Final = "NAME:PASSWORD"
_RACKS: Final = "NAME,NAME..."
_TOPIC: Final = "NAME[:PARTITIONS[:REPLICAS]]"


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the sub-command `broker`, and return its parser. In the parsed arguments, `run` is this module's `run`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "broker",
        help="run a Kafka-compatible cluster in one process, with real replication and time-outs",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--brokers", type=int, default=1, metavar="N", help="number of brokers (default: %(default)s)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on, 0.0.0.0 for all (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=9092, help="first broker's port; 0 picks free ports (default: %(default)s)"
    )
    parser.add_argument(
        "--advertise",
        metavar="HOST[:PORT]",
        help="address returned to clients (default: the one they connected to, or --host); PORT: the first broker's",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory for data (default: in memory)")
    parser.add_argument(
        "--set", action="append", default=[], metavar=_SETTING, help="broker setting, by Kafka's name; repeatable"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar=_TOPIC, help="topic to create unless it exists; repeatable"
    )
    parser.add_argument(
        "--request-log", type=Path, metavar="DIR", help="write Kafka's request log to DIR/broker-N/kafka-request.log"
    )
    parser.add_argument(
        "--security",
        choices=PROTOCOLS,
        default="PLAINTEXT",
        metavar="PROTOCOL",
        help="security protocol for clients: PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL",
    )
    parser.add_argument(
        "--user", action="append", default=[], metavar=_USER, help="SASL credentials to accept; repeatable"
    )
    parser.add_argument("--racks", metavar=_RACKS, help="racks, which the brokers take in turn (default: none)")
    parser.add_argument(
        "--control",
        nargs="?",
        type=int,
        const=0,
        metavar="PORT",
        help="serve control over HTTP on PORT (without PORT or 0: a free port); the first line of output is then JSON",
    )
    parser.add_argument(
        "--clock",
        choices=("real", "held"),
        default="real",
        help="held: time stands still until control or the window advances it (default: %(default)s)",
    )
    parser.add_argument("--token", help="token for control and the window, required beyond loopback")
    parser.add_argument(
        "--until-stdin-closes",
        action="store_true",
        help="stop when standard input closes, as it does when the parent that holds the pipe ends, even if killed",
    )
    add_json(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, others: Mapping[str, Serve]) -> int:
    """Run a cluster until a signal. `others` maps options that take a port (`window`) to starters of their servers."""
    from abeyant.broker import Cluster

    servers = {"control": _serve_control, **others}
    ports = {name: getattr(args, name) for name in servers}
    active_ports = {name: _in_range(f"--{name}", port, 0, 65_535) for name, port in ports.items() if port is not None}
    for option in ("token", "clock"):
        if not active_ports and getattr(args, option) not in (None, "real"):
            options = " or ".join(f"--{name}" for name in servers)
            raise AbeyantError(f"--{option} is for {options}: add one, or leave --{option} out")
    if active_ports and (packages := missing({"window": ("h11",)})):
        raise needs(f"--{next(iter(active_ports))}", packages)
    topics = [_topic(text) for text in args.topic]
    _require_unique("--topic", [(name, None) for name, *_ in topics])
    cluster = Cluster(
        _in_range("--brokers", args.brokers, 1, 1000),
        clock=args.clock,
        host=_host(args.host),
        port=_in_range("--port", args.port, 0, 65_535),
        advertise=args.advertise,
        settings=_require_unique("--set", [_setting(text) for text in args.set]),
        data=args.data,
        request_log=args.request_log,
        security=args.security,
        users=_users(args),
        racks=None if args.racks is None else _racks(args.racks),
    )
    stop = threading.Event()
    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, lambda *_: stop.set()) or signal.SIG_DFL  # None: not set by Python
            stack.callback(signal.signal, number, before)
        stack.enter_context(cluster)
        for name, partitions, replicas in topics:
            if name not in cluster.topics():
                cluster.create_topic(name, partitions, replicas)
        urls = {}
        for name, port in active_ports.items():
            server = stack.enter_context(servers[name](cluster, port, host=args.host, token=args.token))
            urls[name] = server.url.partition("?")[0]  # without the token: this is printed
        _print_addresses(cluster, args, urls)
        if args.until_stdin_closes:
            threading.Thread(target=_read_to_end, args=(stop,), name="abeyant-stdin", daemon=True).start()
        stop.wait()
        print("abeyant: stopping", file=sys.stderr)
    return 0


def _read_to_end(stop: threading.Event) -> None:
    """Read standard input, and set `stop` at its end, or immediately if there is no standard input."""
    with suppress(OSError):
        while os.read(0, 1 << 16):
            pass
    stop.set()


def _serve_control(cluster: Cluster, port: int, *, host: str, token: str | None) -> RunningServer:
    from abeyant.broker.control import serve

    return serve(cluster, port, host=host, token=token)


def _print_addresses(cluster: Cluster, args: argparse.Namespace, urls: Mapping[str, str]) -> None:
    ca_file = cluster.ca_file
    paths = {name: getattr(args, name) and str(getattr(args, name).absolute()) for name in ("data", "request_log")}
    if args.json or "control" in urls:
        ca = {"ssl.ca.location": str(ca_file)} if ca_file else {}
        print_json({"bootstrap.servers": cluster.bootstrap, "brokers": args.brokers, **urls, **paths, **ca})
    else:
        with standard_output():
            print(f"bootstrap.servers={cluster.bootstrap}")
            for name, url in urls.items():
                print(f"{name}={url}")
            if ca_file:
                print(f"ssl.ca.location={ca_file}")
    storage = f"in {args.data}" if args.data else "in memory"
    brokers = "1 broker" if args.brokers == 1 else f"{args.brokers} brokers"
    print(f"abeyant: {brokers}, records {storage}; stop with Ctrl-C", file=sys.stderr, flush=True)


def _host(text: str) -> str:
    if not text:
        raise AbeyantError("--host is empty: give an address, or 0.0.0.0 for all addresses")
    return text


def _in_range(option: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise AbeyantError(f"{option} must be from {least} to {most}, not {value}")
    return value


def _require_unique(option: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    """Return the names and values as a dict. Raises AbeyantError for a repeated name."""
    by_name: dict[str, T] = {}
    for name, value in pairs:
        if name in by_name:
            raise AbeyantError(f"{option} {name} is given twice: leave one out")
        by_name[name] = value
    return by_name


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise AbeyantError(f"--set takes {_SETTING}, for instance min.insync.replicas=2, not {text!r}")
    return name.strip(), value.strip()


def _racks(text: str) -> list[str]:
    racks = [rack.strip() for rack in text.split(",")]
    if not all(racks):
        raise AbeyantError(f"--racks takes {_RACKS}, for instance east,west, not {text!r}")
    return racks


def _users(args: argparse.Namespace) -> dict[str, str]:
    mechanisms = {value for name, value in map(_setting, args.set) if name.endswith("sasl.enabled.mechanisms")}
    only_tokens = mechanisms == {"OAUTHBEARER"} and not args.user
    if bool(args.user) != args.security.startswith("SASL") and not only_tokens:
        raise AbeyantError(f"--user {_USER} and --security SASL_PLAINTEXT or SASL_SSL need each other")
    users = []
    for text in args.user:
        name, colon, password = text.partition(":")
        if not (colon and name and password):
            raise AbeyantError(f"--user takes {_USER}, for instance alice:a-password")
        users.append((name, password))
    return _require_unique("--user", users)


def _topic(text: str) -> tuple[str, int, int | None]:
    name, *numbers = text.split(":")
    try:
        partitions, replicas, *extra = [int(number) for number in [*numbers, *_DEFAULTS[len(numbers) :]]]
    except ValueError:
        extra = [0]  # refused below, as too many parts are
    if extra or not name:
        raise AbeyantError(f"--topic takes {_TOPIC}, for instance orders:6:3, not {text!r}")
    if partitions < 1 or (replicas < 1 and len(numbers) > 1):
        raise AbeyantError(f"--topic {text}: partitions and replicas must be 1 or more")
    return name, partitions, None if replicas < 1 else replicas
