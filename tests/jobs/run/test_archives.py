"""Archives of captures: the same captures as their folders, and no harm done by those that mean some."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from jobs.captures import archives
from jobs.captures.archives import ArchiveError, unpack
from jobs.captures.inputs import opened_inputs
from jobs.captures.planning import ReadPlan, Selection, plan
from jobs.runtime.outcome import ExitCode, Failure

FORMATS = {"tar.gz": "gztar", "tgz": "gztar", "tar": "tar", "zip": "zip"}


def planned(*captures: Path | str) -> ReadPlan:
    with opened_inputs([str(c) for c in captures], None) as inputs:
        return plan(Selection(tuple(inputs.roots)), inputs.left_out)


def identities(found: ReadPlan) -> list[tuple[str, int, str, int]]:
    return [
        (c.capture_id, c.captured_at, c.captured_at_source, sum(f.size_bytes for f in c.files))
        for c in found.captures
    ]


@pytest.fixture
def mini(golden: Path, tmp_path: Path) -> Path:
    """Captures of two nodes; when the second was copied only its files' times tell."""
    copied = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / "mini"))
    (copied / "node-2/capture.json").unlink()
    for at, path in enumerate(sorted(p for p in copied.rglob("*") if p.is_file())):
        os.utime(path, (1_760_000_000 + at, 1_760_000_000 + at))
    return copied


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_archive_holds_the_captures_of_its_folder(mini: Path, tmp_path: Path, suffix: str) -> None:
    made = shutil.make_archive(str(tmp_path / "packed"), FORMATS[suffix], mini)
    archive = Path(made).rename(tmp_path / f"captures.{suffix}")
    found = identities(planned(archive))
    expected = identities(planned(mini))
    if suffix == "zip":  # it holds local times to two seconds
        found, expected = [f[:1] for f in found], [e[:1] for e in expected]
    assert found == expected
    assert len(found) == 2


def test_times_of_a_zip(tmp_path: Path) -> None:
    """The extended timestamp where there is one, else the date as UTC."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        dated = zipfile.ZipInfo("dated", (2026, 11, 21, 9, 15, 22))
        stamped = zipfile.ZipInfo("stamped", (1999, 1, 1, 0, 0, 0))
        stamped.extra = b"\x01\x00\x01\x00?" + b"UT\x05\x00\x01" + (1_760_000_000).to_bytes(4, "little")
        packed.writestr(dated, b"")
        packed.writestr(stamped, b"")
    unpack(tmp_path / "x.zip", tmp_path / "out")
    assert (tmp_path / "out/dated").stat().st_mtime == 1_795_252_522
    assert (tmp_path / "out/stamped").stat().st_mtime == 1_760_000_000


def evil_tar(path: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name in ("../evil", "/tmp/kraftlake-evil", "a/../../evil", "good"):
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"data"))
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("node", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        info = tarfile.TarInfo("link/through")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"data"))


def evil_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        for name in ("../evil", "/tmp/kraftlake-evil", "a/../../evil", "good"):
            packed.writestr(name, b"data")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        packed.writestr(link, b"/etc/passwd")
        packed.writestr("link/through", b"data")


@pytest.mark.parametrize("make", [evil_tar, evil_zip])
def test_nothing_is_written_outside(tmp_path: Path, make: object) -> None:
    archive = tmp_path / f"{make.__name__.replace('_', '.')}"
    make(archive)
    left_out = unpack(archive, tmp_path / "in/side")
    assert {"../evil", "/tmp/kraftlake-evil", "a/../../evil", "link"} <= set(left_out)
    written = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if not p.is_dir())
    assert written == sorted([archive.name, "in/side/good", "in/side/link/through"])
    assert not any(p.is_symlink() for p in tmp_path.rglob("*"))
    assert not Path("/tmp/kraftlake-evil").exists()


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_a_bomb_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    (tmp_path / "zeros").mkdir()
    with (tmp_path / "zeros/zeros").open("wb") as file:
        file.truncate(48 * 1024 * 1024)
    shutil.make_archive(str(tmp_path / "bomb"), FORMATS[suffix], tmp_path / "zeros")
    bomb = tmp_path / f"bomb.{suffix}"
    assert unpack(bomb, tmp_path / "small") == []
    monkeypatch.setattr(archives, "FREE_BYTES", 1024 * 1024)
    with pytest.raises(ArchiveError, match="grows to more than 200 times"):
        unpack(bomb, tmp_path / "out")
    limit = archives.FREE_BYTES + archives.MOST_GROWTH * bomb.stat().st_size
    assert sum(p.stat().st_size for p in (tmp_path / "out").rglob("*")) <= limit


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(tmp_path / "many.tar", "w") as tar:
        for n in range(11):
            tar.addfile(tarfile.TarInfo(str(n)))
    monkeypatch.setattr(archives, "MOST_MEMBERS", 10)
    with pytest.raises(ArchiveError, match="more than 10 files"):
        unpack(tmp_path / "many.tar", tmp_path / "out")


@pytest.mark.parametrize("suffix", FORMATS)
def test_of_a_damaged_archive_nothing_is_read(mini: Path, tmp_path: Path, suffix: str) -> None:
    """Not even what could be unpacked: it is no capture that anybody made. The rest goes on."""
    made = Path(shutil.make_archive(str(tmp_path / "packed"), FORMATS[suffix], mini))
    archive = tmp_path / f"cut.{suffix}"
    archive.write_bytes(made.read_bytes()[: made.stat().st_size * 2 // 3])
    with pytest.raises(Failure) as refused:
        planned(archive)
    assert refused.value.exit_code == ExitCode.NOTHING_READABLE
    assert f"{archive}: damaged" in str(refused.value)
    found = planned(archive, mini)
    assert identities(found) == identities(planned(mini))
    assert len(found.left_out) == 1


def test_scratch_is_removed(mini: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "tar", mini)
    (tmp_path / "scratch").mkdir()
    with opened_inputs([archive], tmp_path / "scratch") as inputs:
        assert inputs.named(str(inputs.roots[0] / "node-1")) == f"{archive}/node-1"
        assert (inputs.roots[0] / "node-1/meta.properties").is_file()
    assert not any((tmp_path / "scratch").iterdir())
