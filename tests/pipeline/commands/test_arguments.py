"""What the commands have in common: how much of a table makes Spark prepare for long work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from abeyant.pipeline.commands.arguments import generate_java, is_small


def test_little_is_small_in_a_file_or_below_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "orders" / "day=1"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"part-{number}.csv").write_text("op_id,key,start\n")
    assert is_small(str(tmp_path / "orders"), str(folder / "part-0.csv"))


def test_much_is_not_and_both_tables_count(tmp_path: Path) -> None:
    half = tmp_path / "half.csv"
    half.touch()
    os.truncate(half, 9 << 20)  # takes no space
    assert is_small(str(half))
    assert not is_small(str(half), str(half))
    assert not is_small(str(tmp_path), str(half))


def test_of_another_machine_nothing_is_known() -> None:
    assert not is_small("s3a://shop/orders", "s3a://shop/payments")


def test_java_is_generated_for_much_text_unless_the_user_says_otherwise() -> None:
    name = "spark.sql.codegen.wholeStage"
    for text, conf, said in ((16 << 20, [], None), (17 << 20, [], "true"), (17 << 20, [(name, "false")], "false")):
        args = argparse.Namespace(conf=conf)
        generate_java(args, text)
        assert dict(args.conf).get(name) == said
