"""The lab: other designs of timers and purgatories, measured beside ours. Not part of the installed package.

`rivals` are other designs behind the engine's port, `purgatories` other designs behind the purgatory's; `experiments`
compare them and check the literature's claims (`make lab`). `peers` are timers as their users call them, including
those on the JVM (`jvm`); `benchmarks` measure ours beside them (`make bench`). `broker` and `spark` measure those
parts (`make bench-broker`, `make bench-spark`, `make bench-stream`).
"""

from abeyant import _interpreted
from abeyant.engine import is_compiled

if not is_compiled():  # then the rivals run interpreted as well
    _interpreted.install("lab.")
