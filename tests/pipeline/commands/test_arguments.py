"""What the commands have in common: how much of a table makes Spark prepare for long work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from abeyant.pipeline.commands.arguments import FORMATS, are_small, generate_java
from abeyant.pipeline.sources.files import FileSource
from abeyant.pipeline.sources.registry import SOURCES, source_of
from abeyant.pipeline.sources.source import Input, Source


def there(path: Path | str) -> Source:
    return source_of(Input("events", str(path)))


def test_every_format_can_be_chosen() -> None:
    formats = {kind.format for kind in SOURCES if isinstance(kind, type) and issubclass(kind, FileSource)}
    assert formats == set(FORMATS)


def test_little_are_small_in_a_file_or_below_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "orders" / "day=1"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"part-{number}.csv").write_text("op_id,key,start\n")
    assert are_small(there(tmp_path / "orders"), there(folder / "part-0.csv"))


def test_much_is_not_and_both_tables_count(tmp_path: Path) -> None:
    half = tmp_path / "half.csv"
    half.touch()
    os.truncate(half, 9 << 20)  # takes no space
    assert are_small(there(half))
    assert not are_small(there(half), there(half))
    assert not are_small(there(tmp_path), there(half))


def test_of_another_machine_nothing_is_known() -> None:
    assert not are_small(there("s3a://shop/orders"), there("s3a://shop/payments"))


def test_java_is_generated_for_much_text_unless_the_user_says_otherwise() -> None:
    name = "spark.sql.codegen.wholeStage"
    for text, conf, said in ((16 << 20, [], None), (17 << 20, [], "true"), (17 << 20, [(name, "false")], "false")):
        args = argparse.Namespace(conf=conf)
        generate_java(args, text)
        assert dict(args.conf).get(name) == said
