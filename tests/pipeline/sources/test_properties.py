"""Files of settings are read as Java reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from abeyant.pipeline.sources.properties import parse_properties
from seeds import seeds

JAAS = """\
# a comment
! another
security.protocol = SASL_SSL
sasl.mechanism: PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="alice" \\
    password="a=b:c#d!";
ssl.truststore.location C:\\\\stores\\\\trust.jks
"""


def of_java(spark: SparkSession, text: str) -> dict[str, str]:
    jvm: Any = spark._jvm
    settings = jvm.java.util.Properties()
    settings.load(jvm.java.io.StringReader(text))
    return {name: settings.getProperty(name) for name in settings.stringPropertyNames()}


def test_a_login_in_several_lines_is_one_setting(spark: SparkSession) -> None:
    found = parse_properties(JAAS)
    assert found == of_java(spark, JAAS)
    assert found["sasl.jaas.config"].endswith('PlainLoginModule required username="alice" password="a=b:c#d!";')
    assert found["ssl.truststore.location"] == "C:\\stores\\trust.jks"


@pytest.mark.parametrize("text", ["\\\r#", "\\\n!a=b\nc=d", "a\\\n#b", "\\", "\\\n", "\\\n\\\n#", "\\\n\n#a"])
def test_a_comment_may_follow_a_backslash_that_stands_alone(spark: SparkSession, text: str) -> None:
    assert parse_properties(text) == of_java(spark, text)


@pytest.mark.parametrize("seed", seeds(4, quick=1))
def test_any_text_is_read_as_java_reads_it(spark: SparkSession, seed: int) -> None:
    @given(st.text("ab=: \\\t\f\n\r#!tnu0041é", max_size=24))
    def as_java(text: str) -> None:
        if "\\u" not in text:  # one that is cut off is an error there
            assert parse_properties(text) == of_java(spark, text)

    as_java()
