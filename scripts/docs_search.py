"""Ask the documentation site's own search, in a real browser, for the words that people come with.

    PYTHONPATH=tests python -m scripts.docs_search build/site

Ends with an error where another page than the one meant comes first. Without a browser it says so, and passes.
"""

from __future__ import annotations

import json
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from pages.browser import browse, installed

# What is searched for, and the page that is to come first.
QUESTIONS: Final = {
    "getting started": "index.html",
    "pytest": "virtual-time.html",
    "timeout": "timers.html",
    "retry": "virtual-time.html",
    "heartbeat": "questions.html",
    "SLA": "questions.html",
    "not paid": "questions.html",
    "never paid": "questions.html",
    "expired orders": "resolve.html",
    "late order": "questions.html",
    "late orders": "questions.html",
    "who waited": "pipeline.html",
    "time-out of my consumer": "broker-groups.html",
    "kafka": "broker.html",
    "stalled replica": "broker.html",
    "REQUEST_TIMED_OUT": "broker.html",
    "session.timeout.ms": "broker-groups.html",
    "max.poll.interval.ms": "broker-groups.html",
    "aborted": "broker-transactions.html",
    "paper": "lab.html",
    "until_waiting": "abeyant.broker.Cluster.until_waiting.html",
}
_FIRST: Final = "document.querySelector('.md-search-result__item a')?.getAttribute('href')"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


def first_pages(site: Path, browser: str) -> dict[str, str]:
    """Return the address of the page that comes first for each question."""
    found = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with browse(browser) as page:
            page.show()
            for question in QUESTIONS:
                page.visit(f"http://127.0.0.1:{server.server_port}/index.html?q={question.replace(' ', '%20')}")
                found[question] = page.wait_for(_FIRST).split("?")[0].split("#")[0].rsplit("/", 1)[-1]
        server.shutdown()
    return found


def main() -> None:
    """Print what comes first, and end with an error where it is not what is meant."""
    if (browser := installed()) is None:
        print("docs: no chromium here, so the site's search was not asked")
        return
    wrong = []
    for question, page in first_pages(Path(sys.argv[1]), browser).items():
        print(f"docs: {json.dumps(question)} finds {page}")
        if page != QUESTIONS[question]:
            wrong.append(f"{question!r} is to find {QUESTIONS[question]} first, not {page}")
    if wrong:
        sys.exit("docs: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
