"""Tables in files: which format they have, and what is read of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.quick.files import read_file
from abeyant.pipeline.schemas import REJECT_REASON
from abeyant.pipeline.sources.csv import Csv
from abeyant.pipeline.sources.csv_separator import separator_of
from abeyant.pipeline.sources.registry import source_of
from abeyant.pipeline.sources.source import Input, Source
from abeyant.pipeline.sources.tables import operations_from
from abeyant.pipeline.spark.errors import explained


def there(path: Path | str) -> Source:
    return source_of(Input("events", str(path)))


def table_of(path: Path | str, spark: SparkSession) -> DataFrame:
    """The table, without the column that says why a row is rejected."""
    return there(path).table(spark).drop(REJECT_REASON)


@pytest.mark.parametrize(
    "name", ["a.csv", "A.CSV", "a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.tsv", "A.TSV.gz", "a.tsv.zst"]
)
def test_csv_is_known_by_its_name_however_it_is_written_or_compressed(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    form = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}.get(name.rpartition(".")[2])
    with pa.output_stream(tmp_path / name, compression=form) as file:
        file.write(b"a, b\tc\n1, 2\t3\n" if "tsv" in name.lower() else b"a,b\n1,2\n")
    source = there(tmp_path / name)
    assert isinstance(source, Csv)
    rows = table_of(tmp_path / name, spark).collect()
    assert rows == [("1, 2", "3") if "tsv" in name.lower() else ("1", "2")]
    if form is None:
        assert [(*row.values(),) for row in read_file(str(tmp_path / name), None).to_pylist()] == rows


@pytest.mark.parametrize(("separator", "ending"), [(";", ""), ("\t", ".gz"), ("|", ".zst")])
def test_columns_may_be_separated_by_what_the_header_has_in_place_of_commas(
    spark: SparkSession, separator: str, ending: str, tmp_path: Path
) -> None:
    lines = ["op id,note", '1,"a, b"', '2,"c,d', '""e"""', "3,5"] if not ending else ["op id,note", "1,a", "2,b"]
    text = "\n".join([lines[0].replace(",", separator), *(line.replace(",", separator, 1) for line in lines[1:]), ""])
    form = {".gz": "gzip", ".zst": "zstd"}.get(ending)
    with pa.output_stream(tmp_path / f"1.csv{ending}", compression=form) as file:
        file.write(text.encode())
    rows = [row.asDict() for row in table_of(tmp_path, spark).collect()]
    if ending:
        assert rows == [{"op id": "1", "note": "a"}, {"op id": "2", "note": "b"}]
    else:
        assert rows == read_file(str(tmp_path / "1.csv"), None).to_pylist()
        assert [row["note"] for row in rows] == ["a, b", 'c,d\n"e"', "5"]


@pytest.mark.parametrize(
    ("header", "separator"),
    [
        *(("a,b", ","), ("a;b", ";"), ("a\tb;c\td", "\t"), ("a|b", "|"), ("a", ","), ("a b", ",")),
        *(('"x, y";b', ";"), ('\ufeff"x, y";b', ";"), ('"x; ""y"" (m)",b', ","), ('5" x, y;b', ","), ('a;"b, c', ";")),
    ],
)
def test_a_comma_in_the_header_outside_quotes_is_the_separator(header: str, separator: str) -> None:
    assert separator_of(header) == separator


def test_blank_lines_before_the_header_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    for name, form in (("table.csv", None), ("table.csv.zst", "zstd")):
        with pa.output_stream(tmp_path / name, compression=form) as file:
            file.write(b"\n \n\na;b\n1;2\n")
        assert [row.asDict() for row in table_of(tmp_path / name, spark).collect()] == [{"a": "1", "b": "2"}]


def test_files_of_a_folder_have_one_header(spark: SparkSession, tmp_path: Path) -> None:
    """By default Spark goes by position: a key would be taken for an id, without a word."""
    (tmp_path / "1.csv").write_text("op_id,key\na,k\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"op_id,KEY\nb,k\n"))
    (tmp_path / "3.csv").touch()
    assert sorted(table_of(tmp_path, spark).collect()) == [("a", "k"), ("b", "k")]
    assert [row.key for row in there(tmp_path).table(spark).select("key").collect()] == ["k", "k"]
    (tmp_path / "4.csv").write_text("key,op_id\nk,c\n")
    with pytest.raises(AbeyantError, match=r"has other columns \(.*\) than the files before it \(.*\): "), explained():
        there(tmp_path).table(spark).collect()
    (tmp_path / "4.csv").write_text("a remark\n")
    with pytest.raises(AbeyantError, match=r"4\.csv has another number of columns than the files"), explained():
        there(tmp_path).table(spark).collect()


def test_a_folder_may_have_headers_that_name_a_column_twice_or_not(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("1.csv", "2.csv"):
        (tmp_path / name).write_text("a,A,,b\n1,2,3,4\n")
    table = table_of(tmp_path, spark)
    assert (table.columns, table.count()) == (["a0", "A1", "_c2", "b"], 2)


def test_quotes_and_backslashes_of_csv_are_read_as_all_others_write_them(spark: SparkSession, tmp_path: Path) -> None:
    """RFC 4180: a quote within quotes is doubled, and a backslash is a letter."""
    file = tmp_path / "table.csv"
    file.write_text('a,b\n"say ""hi"", then",1\n"c:\\",2\nd\\,3\n')
    rows = [tuple(row) for row in table_of(file, spark).collect()]
    assert rows == [('say "hi", then', "1"), ("c:\\", "2"), ("d\\", "3")]


def test_what_is_no_utf8_is_null_and_not_some_letter(spark: SparkSession, tmp_path: Path) -> None:
    """Else Müller and Möller of a table in Latin-1 are one key. (A line of JSON is null as a whole.)"""
    lines = [f"{name},x\n".encode(code) for name, code in (("Müller", "latin-1"), ("Möller", "utf-8"))]
    (tmp_path / "table.csv").write_bytes(b"key,b\n" + b"".join(lines))
    rows = table_of(tmp_path / "table.csv", spark).collect()
    assert [tuple(row) for row in rows] == [(None, "x"), ("Möller", "x")]


def test_a_row_with_more_fields_than_the_header_is_rejected_with_its_text(spark: SparkSession, tmp_path: Path) -> None:
    """Spark drops the fields beyond: a comma within a text without quotes would make it another row."""
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "1.csv").write_text('a;b\n1;2\n3;4;5\n6;7;\n8\n"x;y";z;;"w\n"\n;;""\n')
    said = "more fields than the 2 of the header: "
    table = Csv(Input("events", str(tmp_path))).table(spark)
    rows = table.select("a", "b", REJECT_REASON).collect()
    assert rows == [
        ("1", "2", None),
        (None, None, f"{said}3;4;5"),
        ("6", "7", None),
        ("8", None, None),
        (None, None, f'{said}"x;y";z;;"w\n"'),
        (None, None, None),
    ]
    assert [*{row.day for row in table.select("day").collect()}] == [1]


def test_json_that_is_not_in_lines_is_told_so(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('{\n"op_id": "a",\n"key": "k"\n}\n')
    with pytest.raises(AbeyantError, match=r"table\.json: no line is a JSON object: write one"):
        there(tmp_path / "table.json").table(spark)


def test_lines_that_are_no_json_object_are_rejected_with_their_text(spark: SparkSession, tmp_path: Path) -> None:
    fine = {"op_id": "a", "key": "k", "start": "2026-03-02T12:00:00Z", "timeout": "1 h"}
    (tmp_path / "table.json").write_text("\n".join([json.dumps(fine), '{"op_id": "b", ', "[7]", ""]))
    table = source_of(Input("operations", str(tmp_path / "table.json"))).table(spark)
    assert [(row.op_id, row[REJECT_REASON]) for row in operations_from(table).collect()] == [
        ("a", None),
        (None, 'not a JSON object: {"op_id": "b", '),
        (None, "not a JSON object: [7]"),
    ]


def test_two_fields_of_one_name_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('{"op_id": "a", "OP_ID": "b"}\n')
    with pytest.raises(AbeyantError, match=r"table\.json: 2 columns `op_id`: rename all but one, or tell them apart"):
        there(tmp_path / "table.json").table(spark)


def test_utf_16_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """As PowerShell writes it, and Excel its `Unicode Text`."""
    file = tmp_path / "table.csv"
    file.write_text("op_id,key\n", encoding="utf-16")
    for read in (lambda: there(file).table(spark), lambda: read_file(str(file), None)):
        with pytest.raises(AbeyantError, match=r"table\.csv is UTF-16: save it as UTF-8, or convert it \(iconv"):
            read()
    with pa.output_stream(tmp_path / "table.csv.zst", compression="zstd") as packed:
        packed.write(file.read_bytes())
    with pytest.raises(AbeyantError, match=r"/table\.csv\.zst is UTF-16: save it"):
        there(tmp_path / "table.csv.zst").table(spark)


def test_nanoseconds_of_parquet_are_refused_with_the_mend(spark: SparkSession, tmp_path: Path) -> None:
    """As pandas writes times unless told otherwise."""
    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"start": pa.array([1], pa.timestamp("ns"))}), file)
    with pytest.raises(AbeyantError, match=r"table\.parquet: its times are in nanoseconds, .* coerce_timestamps='us'"):
        there(file).table(spark)
