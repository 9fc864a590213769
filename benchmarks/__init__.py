"""The benchmarks: Abeyance's timers and purgatory beside their peers, in one run (`python -m benchmarks`)."""
