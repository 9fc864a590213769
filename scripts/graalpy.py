"""GraalPy, a Python on the JVM: the tests of the rooms below Spark in it, with the pure wheel installed.

    python3 -m scripts.graalpy                      the tests that it is given in `make test-pythons`
    python3 -m scripts.graalpy tests/timer -v       what it is told goes to pytest instead

It comes from Maven Central, 160 MB, and is kept in the user's cache, `abeyant/graalpy-VERSION`. It needs `mvn` and
Java 17 or newer. There it has no just-in-time compiler of its own, so the property tests, of minutes, are left out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.browser_files import NotHadError, build_wheel, run
from scripts.set_up import ROOT, requirements

POM = Path(__file__).with_name("graalpy.pom.xml")
VERSION = re.findall(r"<graalpy.version>(.*)</graalpy.version>", POM.read_text(encoding="utf-8"))[0]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abeyant" / f"graalpy-{VERSION}"
MAIN = "com.oracle.graal.python.shell.GraalPythonMain"
NEEDED = ("iniconfig", "packaging", "pluggy", "pygments", "pytest", "sortedcontainers")
SECONDS = 3600  # for its tests, which take minutes
HYPOTHESIS = "hypothesis<6.156"  # the last that is Python alone; tests/conftest.py asks for it
TESTS = (
    "tests/timer/test_manual.py",
    "tests/timer/test_system.py",
    "tests/idle/test_idle.py",
    "tests/purgatory/test_laws.py",
    "tests/purgatory/test_keys.py",
    "tests/purgatory/test_errors.py",
    "tests/aio/test_timer.py",
    "tests/aio/test_purgatory.py",
)
COUNTS = "it counts no references: an object goes when the JVM collects it"
PROCESSOR = "it cannot tell one thread's processor time, by which the test sees a thread sleep"
CHAIN = "an error that a log raises does not lead there to the one that was being logged, on asyncio's loop either"
DEEP = "its stack does not hold 199 checks, each within the one before"
# What differs there, and why.
EXCEPTIONS = {
    "test_a_task_outlives_its_timer_and_says_that_it_is_no_longer_pending": COUNTS,
    "test_p4_an_ended_peer_is_let_go_of_at_once": COUNTS,
    "test_dropped_with_its_own_timer_its_thread_ends": COUNTS,
    "test_the_collector_does_not_see_who_is_watched_one_by_one": COUNTS,
    "test_coming_and_going_leaves_no_memory_behind": COUNTS,
    "test_a_key_is_let_go_of_with_its_last_operation_and_outside_the_lock": COUNTS,
    "test_t4_an_ended_task_is_let_go_of_at_once": COUNTS,
    "test_a_dropped_loop_is_freed_with_its_timer_and_tasks": COUNTS,
    "test_t8_a_log_that_raises_harms_no_other_and_leaves_the_loop_running": CHAIN,
    "test_a_condition_may_check_other_keys": DEEP,
    "test_t10_an_idle_timer_neither_wakes_nor_costs_cpu_time": PROCESSOR,
    "test_t10_with_nothing_pending_it_sleeps_until_called": PROCESSOR,
    "test_t10_an_earlier_deadline_wakes_it_and_later_ones_do_not": PROCESSOR,
    "test_t10_starting_and_stopping_time_outs_does_not_wake_it": PROCESSOR,
    "test_an_earlier_task_is_not_kept_waiting_by_a_far_one": PROCESSOR,
}


def make() -> Path:
    """The command that starts it, made if it is not there. Raises NotHadError."""
    command = CACHE / "graalpy"  # written last
    if shutil.which("java") is None:
        raise NotHadError("no java on this machine, which GraalPy runs on")
    if command.exists():
        return command
    if shutil.which("mvn") is None:
        raise NotHadError("no mvn on this machine, by which GraalPy comes")
    jars = CACHE / "jars"
    run("mvn", "-q", "-B", "-f", POM, "dependency:copy-dependencies", f"-DoutputDirectory={jars}")
    # The JVM's first compiler alone: for a run of seconds its second one takes longer than it saves.
    java = f"exec java -XX:TieredStopAtLevel=1 -cp {shlex.quote(f'{jars}/*')} {MAIN}"
    command.write_text(f'#!/bin/sh\n{java} --python.Executable="$0" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command


def install(folder: Path) -> None:
    """Put what the tests need, as pinned where that is Python alone, and this package's pure wheel into `folder`."""
    pinned = {name.lower(): version for name, version in (line.split("==") for line in requirements("test"))}
    wheel = build_wheel(folder)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--no-deps")
    pure = ("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none", "--python-version=3.12")
    names = [f"{name}=={pinned[name]}" for name in NEEDED]
    run(*pip, *pure, "--target", folder / "packages", *names, HYPOTHESIS, wheel)


def test(options: list[str]) -> tuple[int, str]:
    """Run pytest in it with these; its exit status, and what it said. Raises NotHadError."""
    command = make()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder)
        places = {"PYTHONPATH": str(folder / "packages"), "PYTHONPYCACHEPREFIX": str(CACHE / "pyc")}
        environment = {**os.environ, **places, "ABEYANT_PURE": "1"}  # which is all there is, so that nobody is warned
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or it parses its own library at every start
        try:
            ran = subprocess.run(
                [command, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], cwd=ROOT, env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 1, f"not ended after {SECONDS} seconds"
    return ran.returncode, ran.stdout


def chosen() -> list[str]:
    """The tests for it, as pytest's options."""
    left_out = [f"not {name}" for name in EXCEPTIONS]
    return ["-m", "not slow", "-k", " and ".join(left_out), *TESTS]


def main() -> None:
    """Do what the module's docstring says."""
    try:
        status, said = test(sys.argv[1:] or chosen())
    except NotHadError as error:
        raise SystemExit(f"graalpy: error: {error}") from None
    print(said)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
