"""Runs a notebook's cells in order: python -m tests.notebook [FOLDER FILE] stores what they show."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

NOTEBOOK = Path(__file__).parents[1] / "notebooks/who-led-when.ipynb"


def outputs(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """What each code cell prints and draws, as the notebook stores it; run it in the folder notebooks/."""
    names: dict[str, Any] = {}
    mpl.use("agg")
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
        found: list[dict[str, Any]] = []
        if text := printed.getvalue():
            found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
        found += [drawn(number) for number in plt.get_fignums()]
        yield found


def drawn(number: int) -> dict[str, Any]:
    """A figure of pyplot's, which is closed."""
    picture = io.BytesIO()
    plt.figure(number).savefig(picture, format="png", dpi=100)
    plt.close(number)
    data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def stored(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(folder: Path) -> dict[str, Any]:
    """The notebook with what it shows when it is run in `folder`, which is beside the folder tests/."""
    notebook = json.loads(NOTEBOOK.read_text())
    with chdir(folder):
        found = list(outputs(notebook))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, made) in enumerate(zip(cells, found, strict=True), 1):
        cell["outputs"], cell["execution_count"] = made, number
    return notebook


def main(folder: str = str(NOTEBOOK.parent), to: str = str(NOTEBOOK)) -> None:
    Path(to).write_text(json.dumps(executed(Path(folder)), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
