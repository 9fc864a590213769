"""The brokers' settings in this set: Kafka's defaults, but for what would take long."""

from abeyant.broker.settings import AUTHORIZER

LAG_SECONDS = 3.0

SETTINGS = {
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "auto.create.topics.enable": "true",
    # Longer than a follower is frozen for where it is to stay in sync.
    "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
    # A follower's fetch that is under way does not know of a new partition.
    "replica.fetch.wait.max.ms": "50",
    # Nor does its leader, for a moment; the follower asks again after this.
    "replica.fetch.backoff.ms": "50",
    "offsets.topic.num.partitions": "1",
    # A target of a consumer group is made at once.
    "group.consumer.assignment.interval.ms": "0",
    # So that a group may have others, within seconds.
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    # Genuine Kafka has 3,000 ms.
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
    # How often Kafka looks for transactions whose time is over.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}

# Families that play on brokers with SASL and an authorizer, where requests are an administrator's unless they say more
GUARDED_FAMILIES = frozenset({"acl_rules", "acls_of_groups", "acls_of_topics", "delegation_tokens"})
# Families that genuine Kafka plays with a plugin that takes clients' metrics
PLUGIN_FAMILIES = frozenset({"telemetry"})
ADMIN = "admin"
PASSWORDS = {ADMIN: "admin's", "alice": "alice's", "bob": "bob's"}
GUARDED = SETTINGS | {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",  # genuine Kafka's controllers come by PLAINTEXT
    "delegation.token.secret.key": "a secret",
    "delegation.token.expiry.check.interval.ms": "3600000",
}
