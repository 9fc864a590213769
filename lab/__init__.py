"""The lab: other designs of timers and purgatories, measured beside ours. Not part of the installed package.

`rivals` are other designs of timer queues with the engine's interface, `purgatories` other designs with the purgatory's
interface; `experiments` compare them and check the literature's claims (`make lab`). `peers` are timers as their users
call them, including timers on the JVM (`jvm`); `benchmarks` measure ours beside these peers (`make bench`). `broker`
and `spark` measure the broker and the pipeline (`make bench-broker`, `make bench-spark`, `make bench-stream`).
"""

from abeyant import _interpreted
from abeyant.engine import is_compiled

if not is_compiled():  # then the rivals run interpreted as well
    _interpreted.install("lab.")
