"""Run the example notebooks and keep what they show in them.

    PYTHONPATH=tests python -m scripts.run_notebooks

Each runs in a kernel of its own, in its folder. A page that a cell shows, such as plots of 1.4 MB, is kept as a picture
that a browser took of it, so that it is seen everywhere, on this repository's pages too. Needs chromium, and Java for
the notebook with Spark.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nbclient
import nbformat

from pages.browser import Page, browse, installed

NOTEBOOKS: Final = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
_HOST: Final = "<!doctype html><meta charset=utf-8><body style='margin:0'>{}</body>"
_DRAWN: Final = "document.querySelector('iframe').contentDocument.querySelector('.plot .point') !== null"
_HIGH: Final = "document.documentElement.scrollHeight"


def run(path: Path) -> Any:
    """Return the notebook after all of its cells have run; raises CellExecutionError where one fails."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as home:
        os.environ |= dict.fromkeys(
            ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"), home
        )
        client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if "outputs" in cell:
            cell.outputs = joined(cell.outputs)
    notebook.metadata["language_info"] = {"name": "python"}  # not the version of whoever ran it
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """Return the outputs of a cell with what was printed in one piece, however slowly it came."""
    whole: list[Any] = []
    for output in outputs:
        if whole and "name" in output and output.get("name") == whole[-1].get("name"):
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def _picture(html: str, page: Page, file: Path) -> bytes:
    file.write_text(_HOST.format(html), encoding="utf-8")
    page.show(width=900, height=400)
    page.open(file)
    page.wait_for(_DRAWN)
    page.show(width=900, height=page.run(_HIGH))
    page.picture(taken := file.with_suffix(".png"))
    return taken.read_bytes()


def main() -> None:
    """Run all notebooks and write them with what they show."""
    if (browser := installed()) is None:
        sys.exit("run_notebooks: error: no chromium is installed; it takes the pictures of plots")
    with tempfile.TemporaryDirectory() as folder, browse(browser) as page:
        for path in sorted(NOTEBOOKS.glob("*.ipynb")):
            notebook = run(path)
            for cell in notebook.cells:
                for output in cell.get("outputs", ()):
                    data = output.get("data", {})
                    if "<iframe" in data.get("text/html", ""):
                        picture = _picture(data.pop("text/html"), page, Path(folder) / "output.html")
                        data["image/png"] = base64.b64encode(picture).decode()
            nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
            print(path)


if __name__ == "__main__":
    main()
