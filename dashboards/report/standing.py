"""Pages of single clusters that stand: as long as nothing changes that a page is made from, it stays.

Its last line, a comment, has a digest of that and a checksum of the page itself: no note beside the pages
could be lost, or tell of a page that was edited or half written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import dashboards
import kraft_core
import transforms
from dashboards.report.queries import DETAIL, LakeTables
from dashboards.report.state import ClusterState
from kraft_core.format.batch import crc32c
from transforms.lake.arrow_rows import each_cluster
from transforms.lake.storage.location import Location
from transforms.lake.tables import DERIVATIONS, OBSERVATIONS, REPLAYS, Table

Row = dict[str, Any]
# Whatever makes a page.
PROGRAM = (kraft_core, transforms, dashboards)
SOURCES = {".py", ".sql", ".toml", ".css", ".js"}
# Beside the tables of DETAIL: a cluster's histories and samples change only with these.
OTHERS = (DERIVATIONS, REPLAYS, OBSERVATIONS)
_DIGEST_BYTES = 20


def origins(
    lake: Location,
    clusters: Sequence[str],
    states: Sequence[ClusterState],
    spans: Iterable[Row],
    names: Sequence[str],
) -> dict[str, str]:
    """By cluster a digest of everything that its page is made from, except the present time.

    clusters: those of the lake to be read, the states' and more: to find some takes longer than to read all;
    spans: rows of under_min_isr, of any clusters; names: what the pages say of the lake and of each other.
    Rows in another order make another digest, which costs no more than a page.
    """
    known = {s.cluster_id: _hash(program(), *names, repr(_lasting(s))) for s in states}
    # The engine that answers them has no order.
    for cluster, span in sorted((span["cluster_id"], repr(span)) for span in spans):
        if cluster in known:
            known[cluster].update(span.encode(errors="surrogatepass"))
    for name, rows in _rows(LakeTables(lake, clusters)):
        for cluster, part in each_cluster(rows):
            if cluster in known:
                known[cluster].update(name.encode())
                known[cluster].update(part.serialize())
    return {cluster: found.hexdigest() for cluster, found in known.items()}


def signed(page: str, origin: str) -> bytes:
    """The file of a page that was made from what `origin` is a digest of."""
    text = page.encode()
    return text + _signature(text, origin)


def stands(file: Path, origin: str) -> bool:
    """Whether the file is a page as it was made, from what `origin` is a digest of."""
    try:
        data = file.read_bytes()
    except OSError:
        return False
    end = len(data) - len(_signature(b"", origin))
    return end >= 0 and data[end:] == _signature(data[:end], origin)


def _signature(text: bytes, origin: str) -> bytes:
    # A checksum: it tells of accidents, and is read from hundreds of pages.
    return f"<!-- made from {origin}, is {crc32c(text):08x} -->\n".encode()


def _hash(*parts: str | bytes) -> Any:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        found.update(len(data).to_bytes(8))
        found.update(data)
    return found


@cache
def program() -> str:
    """A digest of the code: another version may write other pages of the same rows."""
    folders = [Path(folder) for package in PROGRAM for folder in package.__path__]
    files = sorted(f for folder in folders for f in folder.rglob("*") if f.suffix in SOURCES)
    return _hash(*(part for f in files for part in (f.name, f.read_bytes()))).hexdigest()


def _lasting(state: ClusterState) -> ClusterState:
    """Without the ages, which change from one moment to the next."""
    return replace(state, reasons=tuple(replace(reason, words="") for reason in state.reasons))


def _rows(tables: LakeTables) -> Iterator[tuple[str, pa.Table]]:
    """The rows that the page of a cluster is made from, by table."""
    wanted: Mapping[Table, Sequence[str]] = dict(DETAIL.values()) | {
        table: [name for name in table.names if name != "cluster_id"] for table in OTHERS
    }
    for table, names in wanted.items():
        found = tables.columns(table, *names)
        if found is not None:
            yield table.name, found
