"""Runs a notebook's cells in order, in this process: python -m tests.notebook stores what they show in it."""

from __future__ import annotations

import base64
import io
import json
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


def main() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    with chdir(NOTEBOOK.parent):
        found = list(outputs(notebook))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, made) in enumerate(zip(cells, found, strict=True), 1):
        cell["outputs"], cell["execution_count"] = made, number
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
