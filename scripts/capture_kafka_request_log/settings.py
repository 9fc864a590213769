"""What the brokers of a capture have set beside what every cluster of ours has, and why."""

SETTINGS = {
    # A follower that stands still leaves the ISR after 6 to 9 s (30 s by default), so that a
    # freeze of some seconds shows both ends: produces that time out first, and produces that
    # wait until the ISR shrinks.
    "replica.lag.time.max.ms": "6000",
    # The controller must not fence the frozen broker before that (9 s by default).
    "broker.session.timeout.ms": "30000",
    # Idle followers and the idle metadata log fill the log with empty fetches: fewer of them.
    "replica.fetch.wait.max.ms": "1500",
    "metadata.max.idle.interval.ms": "5000",
    # Let a member that was killed be missed after 6 s and not after 45 s.
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "2000",
}
