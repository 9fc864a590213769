"""The window's page: one HTML document with its style and scripts. It requests nothing but the stream of events."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from abeyant.web import Response

_HERE = Path(__file__).parent
_WHEEL = _HERE.parent / "pages" / "wheel.js"  # the drawing, shared with reports and the documentation; its style beside


@cache
def page() -> Response:
    """Return the page. The content security policy allows no script but the page's own, and no other server."""
    script = "\n".join(map(_text, (_WHEEL, _HERE / "window.js", _HERE / "window.cluster.js")))
    html = _text(_HERE / "window.html")
    style = f"{_text(_HERE / 'window.css')}\n{_text(_WHEEL.with_suffix('.css'))}"
    html = html.replace("/* style */", style).replace("/* script */", script)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(200, html.encode(), "text/html; charset=utf-8", (("content-security-policy", policy),))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip("\n")
