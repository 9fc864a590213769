"""Keys of signed tokens that a server has: fetched at the start, again after a time, and for an unknown one."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest
import trustme

from abeyant.broker.security.jwt import InvalidTokenError, Validator, validator
from abeyant.broker.settings import Settings
from abeyant.errors import AbeyantError
from broker.tokens import NOW, Keys
from waiting import wait_until


class Server:
    """A server of keys, which may change."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answer = b""
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = outer.answer
                self.send_response(200 if answer else 503)
                self.end_headers()
                self.wfile.write(answer)
                outer.asked += 1

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.settings = {"sasl.oauthbearer.jwks.endpoint.url": f"{scheme}://127.0.0.1:{self.server.server_port}/keys"}
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def serve(self, keys: Sequence[Mapping[str, str]]) -> None:
        self.answer = json.dumps({"keys": keys}).encode()

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def is_valid(validate: Validator, token: str, seconds: float) -> bool:
    try:
        validate(token, int(seconds * 1000))
    except InvalidTokenError:
        return False
    return True


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def test_they_are_fetched_again_for_an_unknown_one_and_after_a_time(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    lasting = {"exp": NOW + 90_000}
    by_rsa, by_curve = keys.signed("rsa", lasting), keys.signed("curve", lasting)
    with Server() as server:
        server.serve(keys.keys[:1])
        validate = validator(Settings(server.settings).__getitem__)
        assert is_valid(validate, by_rsa, NOW)
        assert server.asked == 1
        server.serve(keys.keys[1:])
        assert not is_valid(validate, by_curve, NOW), "the server is asked meanwhile, and nothing waits"
        wait_until(lambda: is_valid(validate, by_curve, NOW))
        assert server.asked == 2
        wait_until(lambda: not is_valid(validate, by_rsa, NOW) and server.asked == 3)
        for _ in range(3):
            assert not is_valid(validate, by_rsa, NOW + 59), "an unknown key is looked for once a minute"
        assert server.asked == 3

        server.answer = b""
        wait_until(lambda: is_valid(validate, by_curve, NOW + 3601) and "503" in caplog.text)
        assert is_valid(validate, by_curve, NOW + 3601), "where that fails, the keys of before hold"
        server.serve(keys.keys[:1])
        wait_until(lambda: not is_valid(validate, by_curve, NOW + 3612))
        assert is_valid(validate, by_rsa, NOW + 3612)


def test_they_come_by_tls_from_who_can_prove_it(keys: Keys, tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    options = {"ssl.truststore.location": str(tmp_path / "ca.pem")}
    with Server(tls) as server:
        server.serve(keys.keys)
        values = Settings(server.settings).__getitem__
        assert validator(values, options)(keys.signed("rsa"), NOW * 1000).principal == "alice"
        with pytest.raises(AbeyantError, match=r"jwks\.endpoint\.url: cannot use .*CERTIFICATE_VERIFY_FAILED"):
            validator(values)
        for answer, why in ((b" " * ((1 << 20) + 1), "more than 1048576 bytes"), (b"[" * 100_000, "cannot use"),
                            (b"", "503"), (b"{}", "a JSON member is missing")):  # fmt: skip
            server.answer = answer
            with pytest.raises(AbeyantError, match=why):
                validator(values, options)
