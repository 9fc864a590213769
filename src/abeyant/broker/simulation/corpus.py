"""Keep a corpus in a file from run to run (`--kafka-corpus`): for each test, the seeds that reached something new.

New is an error or a state change that no earlier seed had reached. The seeds of the corpus run first, so that a short
search reaches again whatever a long search has reached once. The file is JSON, sorted by test and seed, so that it can
be kept in a repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from abeyant.pages.document import write_whole
from abeyant.simulation.errors import SimulationError

Corpus = dict[str, dict[int, list[str]]]
"""By test and seed, the names of the errors and state changes that this seed was the first to reach."""


def read_corpus(path: Path) -> Corpus:
    """Return the corpus in a file; an empty corpus if there is no file. Raises SimulationError for an invalid file."""
    if not path.exists():
        return {}
    try:
        corpus = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(test): {int(seed): [str(name) for name in reached] for seed, reached in seeds.items()}
            for test, seeds in corpus.items()
        }
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise SimulationError(f"--kafka-corpus: {path} is not a corpus ({error}): name another file") from None


def write_corpus(path: Path, corpus: Corpus) -> None:
    """Write a corpus to a file. Raises SimulationError if the file cannot be written."""
    ordered = {test: {str(seed): seeds[seed] for seed in sorted(seeds)} for test, seeds in sorted(corpus.items())}
    try:
        write_whole(json.dumps(ordered, indent=1) + "\n", path)
    except OSError as error:
        raise SimulationError(f"--kafka-corpus: cannot write {path}: {error.strerror}") from None


def extended(known: Mapping[int, Sequence[str]], features: Iterable[tuple[int, Sequence[str]]]) -> dict[int, list[str]]:
    """Return `known` with the seeds of `features` that reached a new name. Both hold, by seed, the names reached."""
    seeds = {seed: list(reached) for seed, reached in known.items()}
    names = {name for reached in seeds.values() for name in reached}
    for seed, reached in features:
        new = [name for name in reached if name not in names]
        if new:
            names.update(new)
            seeds[seed] = sorted({*seeds.get(seed, ()), *new})
    return seeds
