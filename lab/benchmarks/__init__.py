"""The benchmarks: Abeyant's timers and purgatory beside their peers, in one run (`python -m lab.benchmarks`)."""
