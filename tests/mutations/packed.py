"""Damaged archives: each is unpacked whole, but for what it names, or refused; nothing leaves its folder."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random

from tests.mutations.damage import damaged
from transforms.ingest.archives import ArchiveError, unpack

MEMBERS = {f"node/{name}": name.encode() * size for name, size in (("a.log", 400), ("b", 1), ("c/d.txt", 30))}


@cache
def _made(suffix: str) -> bytes:
    out = io.BytesIO()
    if suffix == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in MEMBERS.items():
                packed.writestr(zipfile.ZipInfo(name, (2026, 11, 21, 9, 15, 22)), content)
    else:
        with tarfile.open(
            fileobj=out, mode="w:gz" if suffix == "tgz" else "w", format=tarfile.PAX_FORMAT
        ) as tar:
            for name, content in MEMBERS.items():
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(content), 1_795_252_522.25
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def check_archive(rng: Random, folder: Path) -> int:
    """Unpacks a damaged archive."""
    suffix = rng.choice(("tar", "tgz", "zip"))
    data = damaged(rng, _made(suffix), _made(suffix))
    path, out = folder / f"captures.{suffix}", folder / "out"
    path.write_bytes(data)
    out.mkdir()
    before = set(folder.iterdir())
    try:
        left_out = unpack(path, out)
        written = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
        # A tar has no index: of what was cut out whole nothing is left.
        rest = data if suffix == "tar" else b""
        for content in written.values():
            rest = rest.replace(content, b"")
        there = [name for name in MEMBERS if suffix != "tar" or name.encode() + b"\0" in rest]
        assert len(written) + len(left_out) >= len(there), "a member vanished"
        if suffix != "tar":  # an uncompressed one has no checksum of what it holds
            assert all(content == MEMBERS.get(name, content) for name, content in written.items())
    except ArchiveError:
        pass
    finally:
        shutil.rmtree(out)
    assert set(folder.iterdir()) == before - {out}
    return len(data)
