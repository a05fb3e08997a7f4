"""The actions of a Delta log that commit a change of files."""

from __future__ import annotations

import time
from typing import Any

from deltalake.transaction import AddAction, RemoveAction

from transforms.lake.arrow_rows import Row
from transforms.lake.file_changes import FileChange


def appending(file: Row) -> list[dict[str, Any]]:
    """The actions of a commit that adds a file (a row of table_files.FILES), as Delta's protocol has them."""
    done = {"timestamp": file["modified_ms"], "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    added = {
        "path": file["path"],
        "partitionValues": {},
        "size": file["size_bytes"],
        "modificationTime": file["modified_ms"],
        "dataChange": True,
        "stats": file["stats"],
    }
    return [{"commitInfo": done}, {"add": added}]


def actions_of(change: FileChange) -> list[AddAction | RemoveAction]:
    """The actions of a change, as delta-rs takes them."""
    now_ms = time.time_ns() // 1_000_000
    added = [
        AddAction(f["path"], f["size_bytes"], {}, f["modified_ms"], change.data_change, f["stats"])
        for f in change.added
    ]
    removed = [RemoveAction(f.path, change.data_change, now_ms, f.size_bytes, {}) for f in change.removed]
    return [*added, *removed]
