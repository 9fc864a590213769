"""Run the test suites of Kafka clients against brokers of ours; they are unmodified but for where they find the broker.

    python -m scripts.client_suites kafka-python --source REPOSITORY
    python -m scripts.client_suites aiokafka --source REPOSITORY
    python -m scripts.client_suites confluent-kafka --source REPOSITORY
    python -m scripts.client_suites librdkafka

REPOSITORY is a folder with the client's source, or the address of its git repository. librdkafka's tests come with a
package of npm, so it needs none. Each suite runs below build/client-suites, in an environment of its own. Prints how
many ran and passed, and why each other did not (reasons.tsv); status 1 where something failed for no known reason, or
where a reason names a test that is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from abeyant.broker.genuine import ClusterError
from scripts.client_suites import librdkafka
from scripts.client_suites.kafka_scripts import write_starters, write_tools
from scripts.client_suites.pytest_suite import environment, run_pytest
from scripts.client_suites.results import Result, summary
from scripts.client_suites.source import SuiteError, take
from scripts.set_up import ROOT

_STAND_IN = Path(__file__).with_name("stand_in")
_CODECS = ("lz4", "zstandard", "python-snappy", "crc32c", "cramjam")
_KAFKA = "4.3"
_WITH_A_BROKER = "Integration or TestAdmin or SASL or TestSender"  # of aiokafka's; its other tests have none


def kafka_python(folder: Path, only: str, *, genuine: bool) -> list[Result]:
    """Its integration tests: they start their brokers by the scripts of Kafka's distribution."""
    packages = ["pytest", "pytest-mock", "pytest-timeout", "py", *_CODECS, str(folder)]
    python = environment(folder.with_name("kafka-python-environment"), packages)
    scripts = folder / "servers" / _KAFKA / "kafka-bin" / "bin"
    write_tools(scripts)
    write_starters(scripts, genuine=genuine)
    return run_pytest(python, folder, ["test/integration"], {"KAFKA_VERSION": _KAFKA}, only)


def aiokafka(folder: Path, only: str, *, genuine: bool) -> list[Result]:
    """Its functional tests: the broker that they ask of Docker."""
    if genuine:
        raise SuiteError("aiokafka has genuine Kafka in containers of its own: run its tests with Docker")
    pinned = (folder / "requirements-ci.txt").read_text().split()
    packages = [one for one in pinned if one.startswith(("pytest==", "pytest-asyncio==", "pytest-mock==", "cramjam=="))]
    python = environment(folder.with_name("aiokafka-environment"), [*packages, "pytest-timeout", "crc32c", str(folder)])
    path = f"{_STAND_IN}{os.pathsep}{os.environ['PATH']}"
    variables = {
        "PYTHONPATH": str(_STAND_IN),
        "PATH": path,
        "ABEYANT": str(Path(sys.executable).with_name("abeyant")),
    }
    tools = folder.with_name("aiokafka-tools")
    if write_tools(tools):
        variables["KAFKA_TOOLS"] = str(tools)
    # The package that is installed has the compiled parts, the source does not: let the tests see only the former.
    (folder / "aiokafka").rename(folder / "aiokafka-source")
    image = ["--docker-image=abeyant:4.3.0", "--no-pull", "--import-mode=append", "--timeout=300"]
    return run_pytest(python, folder, [*image, "tests"], variables, only or _WITH_A_BROKER)


def confluent_kafka(folder: Path, only: str, *, genuine: bool) -> list[Result]:
    """Its integration tests of share groups and administration: the brokers that they ask of trivup."""
    if genuine:
        raise SuiteError("confluent-kafka's tests start genuine Kafka by themselves: run them with trivup")
    packages = ["confluent-kafka[schemaregistry,avro,json,protobuf]", "requests", "pytest", "pytest-timeout"]
    python = environment(folder.with_name("confluent-kafka-environment"), [*packages, "pytest-asyncio"])
    variables = {"PYTHONPATH": f"{_STAND_IN}{os.pathsep}.", "ABEYANT": str(Path(sys.executable).with_name("abeyant"))}
    suites = ("admin", "share_consumer", "share_consumer_sasl", "share_consumer_oauth")
    tests = [f"tests/integration/{one}" for one in suites]
    return run_pytest(python, folder, ["--timeout=120", *tests], variables, only)


def main() -> int:
    """Run one suite."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.client_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=["kafka-python", "aiokafka", "confluent-kafka", "librdkafka"])
    parser.add_argument("--source", help="a folder, or the address of a git repository")
    parser.add_argument("--only", default="", help="tests whose names match: pytest's -k, or a regular expression")
    parser.add_argument("--genuine", action="store_true", help="beside genuine Kafka, to see whose fault a failure is")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each of librdkafka's tests")
    args = parser.parse_args()
    folder = ROOT / "build" / "client-suites" / args.suite
    folder.parent.mkdir(parents=True, exist_ok=True)
    results = []
    try:
        if args.suite == "librdkafka":
            print(f"librdkafka {librdkafka.prepare(args.source, folder)}", flush=True)
            for result in librdkafka.results(folder, args.only, args.timeout, genuine=args.genuine):
                print(f"  {result.outcome:8}{result.seconds:6.1f} s  {result.test}", flush=True)
                results.append(result)
        elif args.source:
            print(f"{args.suite} {take(args.source, folder)}", flush=True)
            suites = {"kafka-python": kafka_python, "aiokafka": aiokafka, "confluent-kafka": confluent_kafka}
            results = suites[args.suite](folder, args.only, genuine=args.genuine)
        else:
            raise SuiteError(f"{args.suite} has no tests in its packages: name its repository with --source")
    except (SuiteError, ClusterError) as error:
        print(f"client_suites: {error}", file=sys.stderr)
        return 2
    (folder.parent / f"{args.suite}.json").write_text(json.dumps([one._asdict() for one in results], indent=1))
    text, unexplained = summary(args.suite, results, whole=not args.only)
    print(text)
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
