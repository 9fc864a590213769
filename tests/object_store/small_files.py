"""What small files of ours do while they are replaced: `python -m object_store.small_files ROOT`, settings on stdin.

Prints one object of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.pipeline.results.leases.store import StoreLease
from abeyant.pipeline.spark.store import Store, places_of

TURNS = 30


def main() -> None:
    root = sys.argv[1]
    spark = pipeline.spark_session("local[2]", "small files", brief=True, config=json.load(sys.stdin))
    store = Store(spark, root)
    told = {
        "replaced": replaced(store),
        "firsts": firsts(store),
        "halves": halves(store) if len(places_of(f"{root}/m.json")) > 1 else None,
        "claimed": claimed(store),
    }
    spark.stop()
    print(json.dumps(told))


def meanwhile(work: Callable[[], None], look: Callable[[], object]) -> list[object]:
    """Look again and again while something works; return what was seen."""
    seen: list[object] = []
    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        seen.append(look())
    worker.join()
    return [*seen, look()]


def replaced(store: Store) -> list[object]:
    """All texts that a reader meets while a file is replaced; each once, in order."""
    store.put("marker.json", "0")

    def work() -> None:
        for turn in range(1, TURNS):
            store.put("marker.json", str(turn))

    return _each(meanwhile(work, lambda: store.read("marker.json")))


def firsts(store: Store) -> list[list[object]]:
    """Of eight who write one new file at once: who was told to be the first, and whose text is there."""
    found: list[list[object]] = []
    for turn in range(8):
        name = f"first/{turn}.json"
        first: list[int] = []

        def write(writer: int, name: str = name, first: list[int] = first) -> None:
            if store.put_new(name, str(writer)):
                first.append(writer)

        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        found.append([*first, int(store.read(name) or -1)])
    return found


def halves(store: Store) -> list[object]:
    """What is read after each step at which a writer can be killed, and after the next write."""
    seen: list[object] = []
    for name, there in (("a.json", ("old", "new")), ("b.json", (None, "new"))):
        for place, text in zip(places_of(name), there, strict=False):
            if text is not None:
                store._files.write_text(place, text)
        seen.append(store.read(name))
        store.put(name, "newest")
        seen += [store.read(name), [other for other in store.names("") if other.startswith(name)]]
    return seen


def claimed(store: Store) -> list[object]:
    """What others are told while a claim is renewed over and over."""
    claim = StoreLease(store, "run")

    def work() -> None:
        for _ in range(TURNS):
            store.renew(claim._file(claim.name), claim._text)

    def look() -> object:
        claim.check()
        try:
            return StoreLease(store, "run").name
        except AbeyantError as error:
            return str(error).partition(": ")[0].partition(" since")[0]

    found = _each(meanwhile(work, look))
    claim.close()
    return [*found, store.names("claims")]


def _each(seen: Iterable[object]) -> list[object]:
    return list(dict.fromkeys(seen))


if __name__ == "__main__":
    main()
