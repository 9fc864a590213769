"""Which time a line's is, behind the times that container runtimes, journald and syslog put before it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from abeyant.pipeline.request_log.line import BadLineError, LineParser
from abeyant.pipeline.request_log.line_time import LineClock
from pipeline.request_log.kafka_lines import line

BERLIN = ZoneInfo("Europe/Berlin")
PREFIXES = {
    "none": "",
    "kubectl --timestamps": "2024-05-01T10:00:00.223456789Z ",
    "kubectl --prefix": "[pod/kafka-0/kafka] 2024-05-01T10:00:00.223456789Z ",
    "CRI": "2024-05-01T12:00:00.223456789+02:00 stdout F ",
    "docker compose": "kafka-1  | 2024-05-01T10:00:00.223456789Z ",
    "journald short": "May 01 12:00:00 host kafka[12]: ",
    "journald short-precise": "May 01 12:00:00.223456 host kafka[12]: ",
    "journald short-iso": "2024-05-01T12:00:01+0200 host kafka[12]: ",
    "journald short-iso-precise": "2024-05-01T12:00:01.223456+02:00 host kafka[12]: ",
    "journald short-full": "Wed 2024-05-01 12:00:01 CEST host kafka[12]: ",
    "journald short-unix": "1714557601.223456 host kafka[12]: ",
    "syslog of RFC 3164": "<134>May  1 12:00:00 host kafka[12]: ",
    "syslog of RFC 5424": "<134>1 2024-05-01T10:00:01.223Z host kafka 12 - - ",
    "two of them": "May 01 12:00:01 host docker[1]: 2024-05-01T10:00:00.223456789Z stdout F ",
}


def microseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
@pytest.mark.parametrize("written", ["2024-05-01 12:00:00,123", "2024-05-01T12:00:00.123", "2024-05-01 12:00:00:123"])
def test_the_time_next_to_the_request_counts(prefix: str, written: str) -> None:
    request = LineParser(BERLIN).parse(prefix.encode() + line(sent=written))
    assert request.sent_us == microseconds("2024-05-01T10:00:00.123Z")


@pytest.mark.parametrize(
    "written",
    [
        *("2024-05-01T10:00:00.123456789Z", "2024-05-01T12:00:00,123456789+02:00", "2024-05-01 12:00:00.123456+0200"),
        *("2024-05-01 12:00:00,123456 +0200", "2024-05-01 12:00:00.1234567+02", "2024-05-01 10:00:00.123456 UTC"),
        *("2024-05-01 12:00:00.123456 CEST", "2024-05-01T12:00:00.123456+02:00[Europe/Berlin]"),
        *("2024-05-01 06:00:00.123456 America/New_York", "2024-05-01 12:00:00.123456"),
        *("2024-05-01 12:00:00.123456 GMT+2", "2024-05-01 12:00:00.123456 UTC+02:00", "2024-05-01 12:00:00.123456 +02"),
        *("2024-05-01 08:00:00.123456 Etc/GMT+2", "2024-05-01 06:00:00.123456 America/Port-au-Prince"),
    ],
)
def test_nanoseconds_and_every_way_to_write_a_zone(written: str) -> None:
    assert LineClock(BERLIN).read(f"[{written}] DEBUG ") == microseconds("2024-05-01T10:00:00.123456Z")
    assert LineClock(BERLIN).read(f"{written} stdout F ") == microseconds("2024-05-01T10:00:00.123456Z")


@pytest.mark.parametrize("prefix", ["", "2024-05-01T10:00:09.2Z stdout F "])
@pytest.mark.parametrize(
    "written",
    [
        *("20240501T120000,123", "20240501120000123", "20240501 120000.123", "2024/05/01 12:00:00.123"),
        *("01 May 2024 12:00:00,123", "1-may-2024 12:00:00,123", "[01/May/2024:12:00:00.123 +0200]"),
        *(
            "2024-05-01\t12:00:00,123",
            "2024-05-01_12:00:00,123",
            "2024-05-01][12:00:00,123",
            "2024-05-01 | 12:00:00,123",
        ),
        *("2024.05.01 12:00:00,123", "20240501 12:00:00,123", "20240501-12:00:00.123", "2024年05月01日 12:00:00,123"),
        *("01. Mai 2024 12:00:00,123", "1 mai 2024 12:00:00,123", "01 de mai. de 2024 12:00:00,123"),
        *("01-mag-2024 12:00:00,123", "01 мая 2024 12:00:00,123", "May 01, 2024 12:00:00,123"),
        *("2024-05-01T07:00:00.123\N{MINUS SIGN}03:00", "2024-05-01T15:30:00,123 +0530"),
        *("01.05.2024 12:00:00,123", "1714557600123", "1714557600.123", "1714557600,123"),
    ],
)
def test_other_ways_to_write_a_time(prefix: str, written: str) -> None:
    assert LineClock(BERLIN).read(f"{prefix}{written} DEBUG ") == microseconds("2024-05-01T10:00:00.123Z")


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("2024-05-01T10:00:00.2Z [12:00:00,123] DEBUG ", "unsupported form: 12:00:00,123"),
        ("2024-05-01T10:00:00.2Z [05/01/2024 12:00:00,123] ", "unsupported form: 05/01/2024 12:00:00,123"),
        ("2024-05-01T10:00:00.2Z 1720000000123 DEBUG ", "unsupported form: 1720000000123"),
        ("2024-05-01T10:00:00.2Z 1720000000.123 DEBUG ", "unsupported form: 1720000000.123"),
        ("2024-05-01T10:00:00.2Z [2024/13/01 12:00:00,123] ", "not a time: 2024-13-01T12:00:00,123"),
        ("2024-05-01T10:00:00.2Z [2024-05-01 12:00] DEBUG ", "unsupported form: 2024-05-01 12:00"),
        ("[2024-05-01 12:00:00,123 PM] ", "unsupported form: 2024-05-01 12:00:00,123 PM"),
        ("[2024-05-01 12:00:00 a.m.] ", "unsupported form: 2024-05-01 12:00:00 a.m"),
        ("[2024-05-01 12:00:00,123 CEST+1] ", "unsupported form: 2024-05-01 12:00:00,123 CEST+1"),
        ("2024-05-01T10:00:00.2Z [2024-05-32 12:00:00,123] ", "not a time: 2024-05-32 12:00:00,123"),
        ("2024-05-01 12:00:00 PDT ", "the time zone Europe/Berlin has no PDT"),
        (
            "2024-03-31 02:30:00,123 ",
            "the clocks of the time zone Europe/Berlin skip this time (check --timezone): 2024-03-31",
        ),
        ("[05/01/2024 12:00:00 PM] DEBUG ", "unsupported form: 05/01/2024 12:00:00 PM"),
        ("2024-05-01T10:00:00.2Z 05/01/2024 1:00:00 PM DEBUG ", "unsupported form: 05/01/2024 1:00:00 PM"),
        ("[21 lis 2026 11:16:16,857] DEBUG ", "unsupported form: 21 lis 2026 11:16:16,857"),
        ("01 marrask. 2024 12:00:00,123 ", "unsupported form: 01 marrask. 2024 12:00:00,123"),
        ("01-05-2024 12:00:00,123 ", "unsupported form: 01-05-2024 12:00:00,123"),
        ("12024-05-01 12:00:00,123 ", "unsupported form: 12024-05-01 12:00:00,123"),
        ("May 01 DEBUG ", "no timestamp in front of the request"),
    ],
)
def test_an_earlier_time_never_stands_for_one_that_is_not_understood(head: str, reason: str) -> None:
    body = line().partition(b" DEBUG ")[2]
    with pytest.raises(BadLineError) as caught:
        LineParser(BERLIN).parse(head.encode() + body)
    assert reason in str(caught.value)


def test_the_hour_that_comes_twice() -> None:
    clock = LineClock(BERLIN)
    written = "[2024-10-27 02:30:00,123] DEBUG "
    first, second = microseconds("2024-10-27T00:30:00.123Z"), microseconds("2024-10-27T01:30:00.123Z")
    assert clock.read(written) == first
    assert clock.read("2024-10-27T01:30:00.2Z " + written) == second
    assert clock.read("2024-10-27T00:30:00.2Z " + written) == first
    assert clock.read("2024-10-27T02:30:00.2+01:00 stdout F " + written) == second
    assert clock.read("[2024-10-27 02:30:00,123 CEST] ") == first
    assert clock.read("[2024-10-27 02:30:00,123 CET] ") == second
    assert clock.read("Oct 27 02:30:00 host " + written) == first


def test_a_second_is_looked_up_once_for_the_lines_of_it() -> None:
    clock = LineClock(UTC)
    for prefix in ("2024-05-01T10:00:00.2Z ", "2023-05-01T10:00:00.2Z ", ""):
        for milliseconds in ("123", "124"):
            found = clock.read(f"{prefix}[2024-05-01 12:00:00,{milliseconds}] ")
            assert found == microseconds(f"2024-05-01T12:00:00.{milliseconds}Z")
