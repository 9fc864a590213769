"""Which CSV files have line breaks within quotes, and how their rows end; Spark then reads them as RFC 4180 has it."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.schemas import REJECT_REASON
from abeyant.pipeline.sources.csv import Csv
from abeyant.pipeline.sources.csv_quotes import _ends_within, _lines, quoted_breaks
from abeyant.pipeline.sources.registry import source_of
from abeyant.pipeline.sources.source import Input


def written(folder: Path, content: bytes, name: str = "table.csv") -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
@pytest.mark.parametrize(
    ("content", "ends"),
    [
        (b"a,b\n1,2\n", None),
        (b'a,b\n1,"2, 3"\n', None),
        (b'a,b\n1,"say ""hi"""\n2,""\n', None),
        (b'a,b\n1,5" pipe\n2,6" pipe\n', None),
        (b'a,b\n1,"x"y\n', None),
        (b'a,b\n1,"x\ny"\n', "\n"),
        (b'a,b\n1,"x\r\ny"\n', "\n"),
        (b'a,b\r\n1,"x\ny"\r\n', "\r\n"),
        (b'a,b\r\n1,"x\r\n\r\ny"\r\n2,3', "\r\n"),
        (b'a,b\n1,5" pipe\n2,"x\ny"\n', "\n"),
        (b'a,b\n1,"x"",\n""y"\n', "\n"),
        (b'\xef\xbb\xbf"a\nb",c\n1,2\n', "\n"),
        (b'a,b\n1,"x\ry"\n', "\n"),
        (b"", None),
    ],
)
def test_line_breaks_within_quotes_are_found(tmp_path: Path, name: str, content: bytes, ends: str | None) -> None:
    assert quoted_breaks([written(tmp_path, content, name)]) == ends


def test_what_spark_could_not_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AbeyantError, match=r"open\.csv: the quote that begins in line 2 is never closed"):
        quoted_breaks([written(tmp_path, b'a,b\n1,"x\n2,y\n', "open.csv")])
    mixed = written(tmp_path, b'a,b\r\n1,"x\ny"\n2,z\r\n', "mixed.csv")
    with pytest.raises(AbeyantError, match=r"mixed\.csv: there are line breaks within quotes, and rows end with"):
        quoted_breaks([mixed])
    one, other = written(tmp_path, b'a,b\n1,"x\ny"\n', "1.csv"), written(tmp_path, b"a,b\r\n1,2\r\n", "2.csv")
    with pytest.raises(AbeyantError, match=r"1\.csv and .*2\.csv: there are line breaks within quotes"):
        quoted_breaks([one, other])


ROWS = st.lists(st.lists(st.text(alphabet='a",;\r\n ', max_size=6), min_size=2, max_size=2), min_size=1, max_size=4)


@given(ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(",;|"))
def test_as_the_csv_module_reads_it(rows: list[list[str]], ending: str, all_quoted: bool, separator: str) -> None:
    text = io.StringIO()
    # Where rows end with a line feed, it leaves a carriage return without quotes.
    quoting: Any = (
        csv.QUOTE_ALL if all_quoted or any("\r" in text for row in rows for text in row) else csv.QUOTE_MINIMAL
    )
    csv.writer(text, lineterminator=ending, quoting=quoting, delimiter=separator).writerows(rows)
    inside, ends = False, 0
    for line in _lines(io.BytesIO(text.getvalue().encode())):
        inside = _ends_within(line, inside, separator.encode())
        ends += not inside
    assert (inside, ends) == (False, len(rows))


def test_spark_reads_them_whole_from_files_folders_and_globs(spark: SparkSession, tmp_path: Path) -> None:
    quoted = b'a,b\r\n1,"x\r\ny, ""z"""\r\n2,5" pipe\r\n'
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder", quoted, "one.csv")
    written(tmp_path / "folder", b"a,b\r\n3,w\r\n", "two.csv")
    rows = [("1", 'x\r\ny, "z"'), ("2", '5" pipe'), ("3", "w")]
    pattern = f"{tmp_path}/fold*/*.csv"
    for path in (str(tmp_path / "folder"), pattern, f"{tmp_path}/fol*"):
        source = source_of(Input("events", path))
        assert isinstance(source, Csv)
        assert sorted(source.table(spark).drop(REJECT_REASON).collect()) == rows
    assert (
        Csv(Input("events", str(tmp_path / "folder" / "one.csv"))).table(spark).drop(REJECT_REASON).collect()
        == rows[:2]
    )
