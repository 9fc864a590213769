"""Tables such as the analysis writes, made from simulated operations: three brokers, five kinds, hostile names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from abeyant.pipeline.report.analysis import ALL, COLUMNS
from abeyant.pipeline.results.directory import MARKER

HOSTILE_KEYS = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<b>bold</b> & \"quoted\" 'key' %{y} \\u003c",
    "https://example.invalid/<a href='javascript:alert(3)'>x</a>",
    "right\N{RIGHT-TO-LEFT OVERRIDE}to left\x07" + "-long" * 40,
)
KINDS = {
    # kind: operations, median wait in ms, spread, time-out in ms
    "PRODUCE": (6_000, 4.0, 1.0, 1_500.0),
    "FETCH_CONSUMER": (9_000, 180.0, 1.3, 500.0),
    "JOIN_GROUP": (60, 900.0, 0.9, 10_000.0),
    "SYNC_GROUP": (60, 40.0, 0.8, 10_000.0),
    "DELETE_RECORDS": (30, 12.0, 1.8, 1_000.0),
}
_AT_ONCE = 0.15
_START = pd.Timestamp("2026-03-01T10:02:11Z")


def operations(
    instances: Sequence[str] = ("1", "2", "3"),
    kinds: Iterable[str] = tuple(KINDS),
    keys: Sequence[str] = HOSTILE_KEYS,
    seed: int = 7,
) -> pd.DataFrame:
    """Simulate operations with a minute in which one broker's followers stood still."""
    random = np.random.default_rng(seed)
    parts = []
    for instance in instances:
        for kind in kinds:
            n, median, spread, timeout = KINDS[kind]
            start = np.sort(random.uniform(0, 600, n))
            wait = random.lognormal(np.log(median), spread, n)
            if kind == "PRODUCE" and instance == instances[0]:
                wait[(start > 200) & (start < 240)] *= 200
            wait[random.random(n) < _AT_ONCE] = 0.0
            names = [*keys, *(f"orders-{i}" for i in range(12))]
            parts.append(
                pd.DataFrame(
                    {
                        "instance": instance,
                        "kind": kind,
                        "key": random.choice(names, n),
                        "start": _START + pd.to_timedelta(start, unit="s"),
                        "waited_ms": np.minimum(wait, timeout),
                        "outcome": np.where(wait >= timeout, "expired", "completed"),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def tables(done: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Derive every table of the report from simulated operations."""
    everywhere = done.assign(instance=ALL)
    both = pd.concat([done, everywhere]) if done["instance"].nunique() > 1 else pd.concat([everywhere, done])
    by_key = _measures(done, ["instance", "kind", "key"])
    made = {
        "requests_by_kind": _requests(done),
        "summary": _measures(both, ["instance", "kind"]),
        "by_key": by_key,
        "pending_plot": _over(done, _pending),
        "timeout_curve": _over(both, _curve),
        "waits": _over(done, _histogram),
        "incidents": _incidents(done),
        "incident_waits": _incident_waits(done),
        "lags": _lags(done),
        "suspects": _suspects(_incidents(done)),
        "waits_by_time": _by_time(done, ["instance", "kind"]),
        "keys_by_time": _by_time(done, ["instance", "kind", "key"]),
        "requests_by_time": _requests_by_time(done),
        "rejected": pd.DataFrame(
            [
                ("1", "broker-1/kafka-request.log", 17, "not JSON", '{"requestHeader": <script>alert(4)</script>'),
                ("1", "broker-1/kafka-request.log", 9_018, "not JSON", "[2026-03-01 10:0"),
                ("2", "broker-2/<i>odd</i>.log", 3, "no time </script>", ""),
            ],
            columns=list(COLUMNS["rejected"]),
        ),
    }
    return {name: frame.reindex(columns=_columns(name, frame)) for name, frame in made.items()}


def write(where: Path, made: dict[str, pd.DataFrame]) -> Path:
    """Write tables as the analysis does: one directory of Parquet each, and the marker."""
    for name, frame in made.items():
        (where / name).mkdir(parents=True)
        frame.to_parquet(where / name / "part-00000.parquet", index=False)
        (where / name / "_SUCCESS").touch()
    marker = {
        "tool": "abeyant",
        "abeyant": "0.1.0",
        "command": "abeyant analyze 'logs/<b>*.log' --out result",
        "requests": 61_234,
        "layouts": ["Strimzi's layout, in docker's json-file"],
        "inputs": [
            {"instance": "1", "file": "logs/broker-1.log.gz", "bytes": 12_345},
            {"instance": "2", "file": "logs/<script>alert(7)</script>.log", "bytes": 67_890},
        ],
        "tables": sorted(made),
    }
    (where / MARKER).write_text(json.dumps(marker), encoding="utf-8")
    return where


def _suspects(incidents: pd.DataFrame) -> pd.DataFrame:
    """Put the first incident down to a broker whose name is hostile."""
    first = incidents.sort_values(["first", "kind"]).head(1)
    found = first[["first", "last"]].assign(
        incident=1, suspect="broker <2>", kind="silent_broker", evidence="broker <2> stopped fetching", confidence=0.95
    )
    return found.reindex(columns=list(COLUMNS["suspects"]))


def _lags(done: pd.DataFrame) -> pd.DataFrame:
    """Return lags of three brokers; broker 2 did not fetch from the first instance while its produces waited."""
    if done.empty:
        return pd.DataFrame(columns=list(COLUMNS["lags"]))
    at = pd.date_range(done["start"].min(), periods=100, freq="6s")
    silent = np.where((np.arange(100) > 33) & (np.arange(100) <= 40), (np.arange(100) - 33) * 6_000.0, 5.0)
    instances = sorted(done["instance"].unique())
    return pd.concat(
        pd.DataFrame(
            {
                "instance": instance,
                "replica": replica,
                "at": at,
                "lag_ms": silent if replica == 2 and instance == instances[0] else 4.0,
            }
        )
        for instance in instances[:3]
        for replica in (1, 2, 3)
    )


def _columns(name: str, frame: pd.DataFrame) -> list[str]:
    return [*COLUMNS[name], *(column for column in frame.columns if column not in COLUMNS[name])]


def _apis(kinds: pd.Series[str]) -> pd.Series[str]:
    """The names of their APIs: one for all kinds of fetches."""
    return kinds.where(~kinds.str.startswith("FETCH_"), "FETCH")


def _requests(done: pd.DataFrame) -> pd.DataFrame:
    waited = done[done["waited_ms"] > 0].groupby(["instance", "kind"]).size().rename("waited").reset_index()
    rows = (
        waited.assign(api=_apis(waited["kind"]))
        .drop(columns="kind")
        .assign(requests=lambda rows: rows["waited"] * 2 + 5)
    )
    metadata = [(instance, "METADATA<i>", 412, 0) for instance in done["instance"].unique()]
    return pd.concat([rows, pd.DataFrame(metadata, columns=["instance", "api", "requests", "waited"])])


def _measures(done: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    rows = []
    for names, part in done.groupby(by):
        waited = part["waited_ms"]
        expired = int((part["outcome"] == "expired").sum())
        p50, p95, p99 = np.percentile(waited, [50, 95, 99], method="inverted_cdf")
        rows.append(
            dict(zip(by, names, strict=True))
            | {
                "operations": len(part),
                "waited": int((waited > 0).sum()),
                "completed": len(part) - expired,
                "expired": expired,
                "unknown": 0,
                "expired_share": expired / len(part),
                "p50_ms": p50,
                "p95_ms": p95,
                "p99_ms": p99,
                "max_ms": waited.max(),
                "total_waited_ms": waited.sum(),
            }
        )
    return pd.DataFrame(rows)


def _incidents(done: pd.DataFrame) -> pd.DataFrame:
    """Bursts of what expired and is no long poll: ten seconds without end one."""
    failed = done[(done["outcome"] == "expired") & ~done["kind"].str.contains("FETCH")]
    failed = failed.assign(end=failed["start"] + pd.to_timedelta(failed["waited_ms"], unit="ms")).sort_values("end")
    rows = []
    for kind, part in failed.groupby("kind"):
        for _, burst in part.groupby((part["end"].diff() > pd.Timedelta(seconds=10)).cumsum()):
            keys = burst["key"].value_counts()
            rows.append(
                {
                    "kind": kind,
                    "trouble": "waited",
                    "first": burst["start"].min(),
                    "last": burst["end"].max(),
                    "operations": len(burst),
                    "expired": len(burst),
                    "longest_ms": burst["waited_ms"].max(),
                    "instances": sorted(burst["instance"].unique()),
                    "keys_struck": len(keys),
                    "keys": list(keys.index[:5]),
                }
            )
    found = pd.DataFrame(rows, columns=list(COLUMNS["incidents"]))
    return found.loc[found["operations"].astype(int) >= 3]


def _incident_waits(done: pd.DataFrame) -> pd.DataFrame:
    """Return what waited during the first two incidents."""
    found = [pd.DataFrame(columns=list(COLUMNS["incident_waits"]))]
    incidents = _incidents(done).sort_values(["first", "kind", "trouble"], kind="stable").head(2)
    for number, incident in enumerate(incidents.to_dict("records"), 1):
        ends = done["start"] + pd.to_timedelta(done["waited_ms"], unit="ms")
        rows = done[(done["waited_ms"] > 0) & (done["start"] <= incident["last"]) & (ends > incident["first"])]
        timeouts = rows["kind"].map(lambda kind: KINDS.get(kind, (0, 0, 0, None))[3])
        found.append(rows.assign(incident=number, timeout_ms=timeouts).head(250))
    return pd.concat(found[1:] or found)


def _sliced(done: pd.DataFrame) -> pd.DataFrame:
    """Add when the tenth of a minute began in which each operation started; and the step of its wait."""
    step = np.floor(np.log10(done["waited_ms"].where(done["waited_ms"] > 0)) * 10)
    return done.assign(at=done["start"].dt.floor("6s"), step=step.astype("Int64"))


def _by_time(done: pd.DataFrame, group: list[str]) -> pd.DataFrame:
    counted = _sliced(done).groupby([*group, "at", "outcome", "step"], dropna=False)
    return counted.size().rename("operations").reset_index()


def _requests_by_time(done: pd.DataFrame) -> pd.DataFrame:
    rows = _sliced(done).assign(api=_apis(done["kind"]), waited=done["waited_ms"] > 0)
    counted = rows.groupby(["instance", "api", "at"])
    return counted.agg(requests=("waited", "size"), waited=("waited", "sum")).reset_index()


def _over(done: pd.DataFrame, derive: object) -> pd.DataFrame:
    assert callable(derive)
    parts = [
        derive(part).assign(instance=instance, kind=kind)
        for (instance, kind), part in done.groupby(["instance", "kind"])
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _pending(part: pd.DataFrame) -> pd.DataFrame:
    ends = part["start"] + pd.to_timedelta(part["waited_ms"], unit="ms")
    changes = pd.concat([pd.Series(1, index=part["start"]), pd.Series(-1, index=ends)])
    level = changes.groupby(level=0).sum().sort_index().cumsum()
    keep = np.unique(np.linspace(0, len(level) - 1, min(len(level), 800)).astype(int))
    return level.iloc[keep].rename("pending").rename_axis("at").reset_index()


def _curve(part: pd.DataFrame) -> pd.DataFrame:
    completed = part[part["outcome"] == "completed"]["waited_ms"]
    timeouts = np.concatenate([[0.0], np.geomspace(0.05, max(completed.max(), 1.0), 80)])
    share = np.array([(part["waited_ms"] > t).mean() for t in timeouts])
    margin = 1.96 * np.sqrt(share * (1 - share) / len(part))
    return pd.DataFrame(
        {
            "timeout_ms": timeouts,
            "at_risk": [int((part["waited_ms"] >= t).sum()) for t in timeouts],
            "share_expiring": share,
            "low": np.clip(share - margin, 0, 1),
            "high": np.clip(share + margin, 0, 1),
        }
    )


def _histogram(part: pd.DataFrame) -> pd.DataFrame:
    edges = np.concatenate([[0.0], np.geomspace(0.01, 20_000, 64)])
    rows = list[pd.DataFrame]()
    for outcome, waited in part.groupby("outcome")["waited_ms"]:
        number, _ = np.histogram(waited[waited > 0], edges)
        rows.append(
            pd.DataFrame({"low_ms": edges[:-1], "high_ms": edges[1:], "operations": number, "outcome": outcome})
        )
    at_once = int((part["waited_ms"] == 0).sum())
    zero = {"low_ms": [0.0], "high_ms": [0.0], "operations": [at_once], "outcome": ["completed"]}
    return pd.concat([*rows, pd.DataFrame(zero)])
