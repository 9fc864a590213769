"""What a token's scope has to be, and the options by which unsecured tokens are held to one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from abeyant.broker import Cluster
from abeyant.broker.security.jwt import InvalidTokenError, validator
from abeyant.broker.settings import Settings
from abeyant.errors import AbeyantError
from broker.tokens import NOW, Keys, Session, at, close_sessions, first, unsecured, valid

OPTIONS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ON = {"sasl.enabled.mechanisms": "OAUTHBEARER"}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    close_sessions()


def test_an_unsecured_token_needs_the_scope_that_is_required() -> None:
    options = f'{MODULE} unsecuredValidatorRequiredScope="read write" unsecuredValidatorAllowableClockSkewMs=5000 ;'
    with Cluster(clock="held", security="SASL_PLAINTEXT", settings={**ON, OPTIONS: options}) as kafka:
        lacking, invalid = '{"status":"insufficient_scope", "scope":"[read, write]"}', '{"status":"invalid_token"}'
        for scope, told in (
            (["write", " read "], ""), (None, lacking), ("read write", lacking), (["read"], lacking), ("", lacking),
            (7, invalid),
        ):  # fmt: skip
            client = Session(kafka)
            client.begin()
            assert client.send(first(valid(kafka, -1, scope=scope)))[:2] == ("none", told)
            if told:
                assert client.send(b"\x01")[:2] == ("sasl_authentication_failed", told)


def test_options_name_the_claims_of_an_unsecured_token() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "client", "unsecuredValidatorScopeClaimName": "may",
        "unsecuredValidatorRequiredScope": "read", "unsecuredLoginStringClaim_sub": "broker",
    }  # fmt: skip
    validate = validator(Settings().__getitem__, options)
    assert validate(unsecured(client="bob", may="read"), NOW * 1000).principal == "bob"
    with pytest.raises(InvalidTokenError, match="the token's claim client is None"):
        validate(unsecured(may="read"), NOW * 1000)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (f"{MODULE} unsecuredValidatorAllowableClockSkewMs=soon;", "AllowableClockSkewMs is 'soon', not a number"),
        (f'{MODULE} unsecuredValidatorRequiredScope="a\\"b";', "is not a valid scope"),
        (f"{MODULE} ssl.truststore.location=x;", "ssl.truststore.location has no effect; give only unsecuredValidator"),
        (MODULE, "must be one login module"), (f"{MODULE};{MODULE};", "must be one login module"),
        ("", "must be one login module"), ("secret", "must be one login module"),
    ],
)  # fmt: skip
def test_other_options_are_refused(written: str, why: str) -> None:
    with pytest.raises(AbeyantError) as caught:
        Cluster(security="SASL_PLAINTEXT", settings={**ON, OPTIONS: written})
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_scopes_of_a_signed_token_are_there_once(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    settings = {**keys.settings, "sasl.oauthbearer.scope.claim.name": "may"}
    for scope in (None, "read write", ["read", "write"], [], 7, {"read": 1}):
        assert at(keys.signed("secret", {"may": scope}), settings).principal == "alice"
    for wrong in ("", " ", [""], ["read", " read"], [7], [None]):
        with pytest.raises(InvalidTokenError, match="a scope is blank or repeated"):
            at(keys.signed("secret", {"may": wrong}), settings)
