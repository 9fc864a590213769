"""The security protocol of a cluster's clients: one of Kafka's four, for all brokers.

After a change of the settings, brokers may differ in their SASL mechanisms: a broker applies the change when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.definitions import OAUTHBEARER_OPTIONS, definition
from abeyant.broker.security.credentials import Credentials
from abeyant.broker.security.jaas import read_options
from abeyant.broker.security.jwt import Validator, validator
from abeyant.broker.security.login import MECHANISMS, Login, SaslSession, Users
from abeyant.broker.security.oauthbearer import MECHANISM as OAUTHBEARER
from abeyant.errors import AbeyantError
from abeyant.reporting import logger

if TYPE_CHECKING:
    from ssl import SSLContext

    from abeyant.broker.security.certificates import Certificates
    from abeyant.broker.settings import Settings

_MECHANISMS: Final = "sasl.enabled.mechanisms"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Security:
    """The security protocol of a cluster's clients."""

    def __init__(self, protocol: str, users: Mapping[str, str] | None, host: str, settings: Settings) -> None:
        """Prepare TLS and SASL as the protocol needs them. `users` maps names to passwords.

        Raises ValueError for invalid arguments, AbeyantError for bad settings.
        """
        if protocol not in PROTOCOLS:
            raise ValueError(f"security must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
        self.protocol = protocol
        prefix = f"listener.name.{protocol.lower()}."
        for name in settings.static:
            if definition("broker", name).base and not name.startswith(prefix):
                raise AbeyantError(f"{name} has no effect: the only listener's settings begin with {prefix}")
        self.certificates: Certificates | None = None
        self._users: Users | None = None
        self._of_brokers: dict[int, Users] = {}  # by id, of brokers whose mechanisms were changed
        self.credentials = Credentials()

        def values(name: str) -> Any:
            return settings.of_listener(name, protocol)

        self._largest: int = values("sasl.server.max.receive.size")
        if protocol.startswith("SASL"):
            mechanisms = _mechanisms(settings, protocol)
            if not users and mechanisms != (OAUTHBEARER,):
                raise ValueError(f'{protocol} needs users, for instance users={{"alice": "a-password"}}')
            longest = {mechanism: _longest(settings, protocol, mechanism) for mechanism in MECHANISMS}
            bearer = _validator(settings, protocol) if OAUTHBEARER in mechanisms else None
            self._users = Users(users or {}, mechanisms, self.credentials, bearer, longest)
        elif users:
            raise ValueError(f"users need SASL_PLAINTEXT or SASL_SSL, not {protocol}")
        if protocol.endswith("SSL"):
            from abeyant.broker.security.certificates import Certificates

            self.certificates = Certificates(host)
            self.tls_context(settings)
        elif names := _tls_settings(settings):
            raise AbeyantError(f"{', '.join(names)} has no effect: security is {protocol}, which has no TLS")

    def tls_context(self, settings: Settings, broker: int | None = None) -> SSLContext | None:
        """Return the TLS context for a broker's new connections; None without TLS. Raises AbeyantError."""
        if self.certificates is None:
            return None
        return self.certificates.context(lambda name: settings.of_listener(name, self.protocol, broker))

    def start(self, settings: Settings, broker: int) -> None:
        """Apply the SASL mechanisms in a broker's current settings. Log and leave out any that is not usable."""
        self._of_brokers.pop(broker, None)
        if self._users is None:
            return
        names = settings.names_of(broker)
        if not any(name.endswith((_MECHANISMS, OAUTHBEARER_OPTIONS)) for name in names):
            return
        mechanisms = settings.of_listener(_MECHANISMS, self.protocol, broker)
        bearer = None
        usable = []
        for mechanism in mechanisms:
            try:
                if mechanism == OAUTHBEARER:
                    bearer = _validator(settings, self.protocol, broker)
                _require_supported(mechanism)
                usable.append(mechanism)
            except AbeyantError as error:
                logger("broker").error("broker %d leaves %s out: %s", broker, mechanism, error)
        self._of_brokers[broker] = self._users.with_mechanisms(tuple(usable), bearer)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the SASL mechanisms that the cluster started with; none without SASL."""
        return self._users.mechanisms if self._users else ()

    def login(self, broker: int, before: SaslSession | None = None) -> Login | None:
        """Start an authentication on a new connection, or to renew the session `before`. Return None without SASL."""
        users = self._of_brokers.get(broker, self._users)
        return Login(users, self._largest, before) if users else None

    def user_of(self, certificate: Mapping[str, Any] | None) -> str:
        """Return the subject of a client's certificate as the user; "ANONYMOUS" without a certificate, or with SASL."""
        if self.protocol != "SSL" or not certificate:
            return "ANONYMOUS"
        from abeyant.broker.security.certificates import distinguished_name

        return distinguished_name(certificate)

    def close(self) -> None:
        """Remove the certificate files."""
        if self.certificates is not None:
            self.certificates.close()


def _mechanisms(settings: Settings, protocol: str) -> tuple[str, ...]:
    """Return the SASL mechanisms in the settings; by default PLAIN and SCRAM, as Kafka's GSSAPI is not supported."""
    if not {_MECHANISMS, f"listener.name.{protocol.lower()}.{_MECHANISMS}"} & {*settings.static}:
        return tuple(name for name in MECHANISMS if name != OAUTHBEARER)  # without keys it accepts any token
    mechanisms = tuple(settings.of_listener(_MECHANISMS, protocol))
    for mechanism in mechanisms:
        _require_supported(mechanism)
    return mechanisms


def _require_supported(mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        raise AbeyantError(f"{_MECHANISMS}: {mechanism!r} is not supported, only {', '.join(MECHANISMS)}")


def _validator(settings: Settings, protocol: str, broker: int | None = None) -> Validator:
    """Return the validator of OAUTHBEARER's tokens. Raises AbeyantError."""
    name = f"listener.name.{protocol.lower()}{OAUTHBEARER_OPTIONS}"
    text: str | None = settings.value(name, broker)
    try:
        options = {} if text is None else read_options(text)
    except ValueError as error:
        raise AbeyantError(f"{name}: {error}") from None
    return validator(lambda setting: settings.of_listener(setting, protocol, broker), options)


def _longest(settings: Settings, protocol: str, mechanism: str) -> int:
    """Return the maximum length of a mechanism's sessions in milliseconds, 0 for no limit."""
    name = "connections.max.reauth.ms"
    override: int | None = settings.value(f"listener.name.{protocol.lower()}.{mechanism.lower()}.{name}")
    limit: int = settings.of_listener(name, protocol)
    return limit if override is None else override


def _tls_settings(settings: Settings) -> list[str]:
    """Return the names of the TLS settings that the cluster was started with and that differ from Kafka's defaults."""
    names = []
    for name, text in settings.static.items():
        setting = definition("broker", name)
        base = definition("broker", setting.base or name)
        if base.name.startswith("ssl.") and base.has_effect and text != base.default:
            names.append(name)
    return names
