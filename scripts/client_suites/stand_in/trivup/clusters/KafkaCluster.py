"""A stand-in for trivup's cluster: brokers of ours, in a process of their own."""

# ruff: noqa: N999  the tests import it by this name

from __future__ import annotations

import json
import os
import subprocess

_OAUTHBEARER = (
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config="
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="admin" unsecuredValidatorRequiredScope="requiredScope";'
)
_UNKNOWN = ("offsets.topic.min.isr",)  # to Kafka, too, which ignores it


class KafkaCluster:
    """What the tests use of it."""

    def __init__(self, **conf: object) -> None:
        """Start as many brokers as `broker_cnt` says, with trivup's own settings and those of `broker_conf`."""
        mechanism, count = str(conf.get("sasl_mechanism") or ""), int(str(conf.get("broker_cnt", 3)))
        given = [str(one) for one in conf.get("broker_conf", [])]  # type: ignore[attr-defined]
        settings = [one for one in given if one.partition("=")[0] not in _UNKNOWN]
        settings += [f"default.replication.factor={min(3, count)}", "num.partitions=4"]
        settings += [
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found=true",
        ]
        command = [os.environ["ABEYANT"], "broker", "--json", "--port", "0", "--brokers", str(count)]
        self._conf: dict[str, object] = {"broker.address.family": "v4"}
        if mechanism:
            command += ["--security", "SASL_PLAINTEXT"]
            settings.append(f"sasl.enabled.mechanisms={mechanism}")
            self._conf |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
        if mechanism == "OAUTHBEARER":
            settings.append(_OAUTHBEARER)
            self._conf |= {
                "enable.sasl.oauthbearer.unsecure.jwt": True,
                "sasl.oauthbearer.config": "scope=requiredScope principal=admin",
            }
        elif mechanism:
            users = [user.partition("=") for user in str(conf["sasl_users"]).split(",")]
            command += [part for name, _, password in users for part in ("--user", f"{name}:{password}")]
            self._conf |= {"sasl.username": users[0][0], "sasl.password": users[0][2]}
        for one in settings:
            command += ["--set", one]
        self._process: subprocess.Popen[str] | None = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._conf["bootstrap.servers"] = json.loads(self._process.stdout.readline())["bootstrap.servers"]

    def wait_operational(self) -> None:
        """Do nothing: brokers listen once they have said where."""

    def client_conf(self) -> dict[str, object]:
        """Return librdkafka's settings of a client."""
        return dict(self._conf)

    def stop(self, **_: object) -> None:
        """Stop the brokers."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
