"""What Spark and its JVM are told where they work for a minute: to spend little on making themselves fast."""

from __future__ import annotations

from typing import Final

__all__ = ["BRIEF_COLLECTOR", "BRIEF_JAVA", "GENERATED", "INTERPRETED"]

BRIEF_COLLECTOR: Final = "-XX:+UseSerialGC"
"""Apart from the others: a JVM that is told of two collectors does not start."""

# A JVM with the first compiler alone would keep 48 MB for compiled code: Spark's fill that within minutes, and without
# any space left a task fails so badly that Spark ends the JVM. It is only reserved, not used.
# Nor does it collect for want of space for classes before it has Spark's.
BRIEF_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:MetaspaceSize=256m")
"""Options of such a JVM."""

INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Java that is written, compiled and loaded for a few rows takes a seventh of a small command's processor time."""

GENERATED: Final = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""The opposite, Spark's own default: to interpret takes 0.15 s a megabyte of a log more."""
