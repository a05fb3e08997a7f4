"""notebooks/who-led-when.ipynb: its cells are Python, and it shows their tables and their picture."""

from __future__ import annotations

import ast
import json

from tests.notebook import NOTEBOOK, stored


def test_the_notebook_shows_what_its_cells_showed() -> None:
    """tests/long/test_notebook.py runs them."""
    notebook = json.loads(NOTEBOOK.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))
    kinds = [[output["output_type"] for output in shown] for shown in stored(notebook)]
    assert kinds == [["stream"], ["stream"], ["stream"], ["display_data"]]
