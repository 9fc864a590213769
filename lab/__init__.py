"""The lab: designs of timers and purgatories, measured beside ours. It is no part of the installed package.

`rivals` are other designs of the engine behind the engine's port, `purgatories` other designs of the purgatory behind
the purgatory's: `experiments` compare them, and decide the literature's claims (`make lab`). `peers` are timers as
their users call them, on the JVM too (`jvm`): `benchmarks` measure ours beside them (`make bench`). `broker` and
`spark` measure those parts (`make bench-broker`, `make bench-spark`, `make bench-stream`).
"""

from abeyant import _interpreted
from abeyant.engine import is_compiled

if not is_compiled():  # then what it is compared with runs interpreted as well
    _interpreted.install("lab.")
