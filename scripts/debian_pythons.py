"""Pythons newer than the machine's: Debian's, from its unstable suite, in a root of their own.

    python3 -m scripts.debian_pythons 3.14 3.15     make the root, or say why it cannot be made

With each come its headers and CPython's own tests, and one C compiler for all. The root is kept in the user's cache,
`abeyant/debian-sid`, about 1 GB, and made anew when a version is asked for that it lacks. Linux, and root's rights:
for debootstrap (apt-get install debootstrap), and for `chroot`, with this checkout bound to the same place inside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.set_up import ROOT

SUITE = "sid"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abeyant" / f"debian-{SUITE}"
TOOLS = ("ca-certificates", "gcc", "libc6-dev")
PER_VERSION = ("python{}", "python{}-venv", "libpython{}-dev", "libpython{}-testsuite")
# $1 is the checkout, $2 the root; what is mounted here is gone with the process.
ENTER = """
mkdir -p "$2$1" "$2/etc/ssl" && mount --bind "$1" "$2$1" &&
mount -t proc proc "$2/proc" && mount --rbind /dev "$2/dev" &&
{ [ ! -d /etc/ssl ] || mount --bind /etc/ssl "$2/etc/ssl"; } && checkout=$1 root=$2 && shift 2 &&
exec chroot "$root" env -C "$checkout" "$@"
"""


class NotHadError(Exception):
    """The root cannot be made; the message says why."""


def packages(versions: list[str]) -> list[str]:
    """What the root holds besides a minimal Debian."""
    ours = [name.format(version) for version in versions for name in PER_VERSION]
    return sorted([*TOOLS, *ours])


def make(versions: list[str]) -> None:
    """Make the root with these Pythons, unless it is there. Half a minute to two. Raises NotHadError."""
    wanted = packages(versions)
    made = FOLDER / "made"  # written last
    if made.exists() and set(wanted) <= set(made.read_text(encoding="utf-8").split()):
        return
    if sys.platform != "linux" or os.geteuid() != 0:
        raise NotHadError("a Debian root is made on Linux, by root")
    missing = [tool for tool in ("debootstrap", "unshare", "chroot") if shutil.which(tool) is None]
    if missing:
        raise NotHadError(f"no {missing[0]} on this machine (apt-get install debootstrap)")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    print(f"debian_pythons: making {FOLDER} with Python {', '.join(versions)}", flush=True)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(wanted)}", SUITE, str(FOLDER)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ran.returncode:
        told = [line for line in ran.stdout.splitlines() if line.startswith(("E:", "W:"))] or ["no word"]
        raise NotHadError(f"debootstrap could not make it: {told[-1]}")
    made.write_text("\n".join(wanted), encoding="utf-8")


def inside() -> list[str]:
    """What to put before a command for it to run in the root, the checkout being where it is, and its folder."""
    return ["unshare", "--mount", "sh", "-ec", ENTER, "sh", str(ROOT), str(FOLDER)]


def main() -> None:
    """Do what the module's docstring says."""
    try:
        make(sys.argv[1:])
    except NotHadError as error:
        raise SystemExit(f"debian_pythons: error: {error}") from None


if __name__ == "__main__":
    main()
