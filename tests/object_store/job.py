"""A stream whose checkpoint and answers are on an object store, to be killed: `python -m object_store.job FOLDER OUT`.

Reads FOLDER/operations and FOLDER/events of this machine, as `pipeline.resolver.streams.job` does; FOLDER/session.json
has the session's settings. The last line it prints is `done`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from abeyant import pipeline
from pipeline.resolver.streams.job import answers


def main() -> None:
    folder, out = Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "session.json").read_text())
    spark = pipeline.spark_session("local[2]", "object store job", brief=True, config=config)
    print("ready", flush=True)
    writer = answers(spark, folder).writeStream.foreachBatch(pipeline.ParquetSink(f"{out}/result"))
    writer = writer.option("checkpointLocation", f"{out}/checkpoint")
    for _ in "input", "end":
        writer.trigger(availableNow=True).start().awaitTermination()
        pipeline.end_of_input(folder / "end")
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
