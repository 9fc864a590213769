"""The lab: the published comparisons of timers and purgatories, reproduced side by side.

`rivals` are other designs of the engine behind the engine's port, `purgatories` other designs of the purgatory behind
the purgatory's. `experiments` measure them; `abeyant lab` runs those and writes the report.
"""
