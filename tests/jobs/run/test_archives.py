"""Archives of captures: the same captures as their folders, and no harm done by those that mean some."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.captures.inputs import opened_inputs
from jobs.captures.planning import ReadPlan, Selection, plan
from jobs.runtime.outcome import ExitCode, Failure
from transforms.ingest import archives
from transforms.ingest.archives import ArchiveError, unpack

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
    left_out = [name for name, _ in unpack(archive, tmp_path / "in/side")]
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
    assert f"left out: {archive}: damaged" in "\n".join(refused.value.details)
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


# --- archives that are no captures: each is refused in one sentence, in little time and memory ---


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def repeated(path: Path, block: bytes, times: int, before: bytes = b"") -> None:
    """A gzip file of a block again and again, cheaply: gzip files may follow each other."""
    with path.open("wb") as file:
        file.write(gzip.compress(before))
        packed = gzip.compress(block)
        for _ in range(times):
            file.write(packed)


def a_million_devices(path: Path) -> None:
    repeated(path, header("null", tarfile.CHRTYPE) * 1000, 1000)


def a_million_directories(path: Path) -> None:
    repeated(path, header("here", tarfile.DIRTYPE) * 1000, 1000)


def ten_gigabytes_of_zeros(path: Path) -> None:
    repeated(path, bytes(1 << 24), 640, header("zeros", size=10 << 30))


def ten_gigabytes_after_the_end(path: Path) -> None:
    repeated(path, bytes(1 << 24), 640, header("empty"))


def ten_gigabytes_of_a_name(path: Path) -> None:
    repeated(path, bytes(1 << 24), 640, header("name", tarfile.GNUTYPE_LONGNAME, 10 << 30))


def a_member_of_8_exabytes(path: Path) -> None:
    path.write_bytes(gzip.compress(header("../skipped", size=(1 << 63) - 512)))


def names_within_names(path: Path) -> None:
    name = header("name", tarfile.GNUTYPE_LONGNAME, 512) + b"x" * 512
    path.write_bytes(gzip.compress(name * 5000))


def a_time_that_no_clock_has(path: Path) -> None:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("file")
        info.pax_headers = {"mtime": "1e400"}
        tar.addfile(info)


def a_hole_of_ten_gigabytes(path: Path) -> None:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("file")
        size = str(10 << 30)
        info.pax_headers = {"GNU.sparse.size": size, "GNU.sparse.map": f"{size},0"}
        tar.addfile(info)


HUGE = "grows to more than 200 times its size"
BOMBS = {
    a_million_devices: "contains more than 10,000 files",
    a_million_directories: "contains more than 10,000 files",
    ten_gigabytes_of_zeros: HUGE,
    ten_gigabytes_after_the_end: HUGE,
    ten_gigabytes_of_a_name: "a header of 10737418240 bytes",
    a_member_of_8_exabytes: "it ends inside a member",
    names_within_names: "recursion",
    a_time_that_no_clock_has: "damaged",
    a_hole_of_ten_gigabytes: HUGE,
}


@pytest.mark.parametrize("make", BOMBS)
def test_an_attack_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(archives, "MOST_GROWTH", 5)  # the zeros compress to 10 MB: less of them to read
    monkeypatch.setattr(archives, "MOST_MEMBERS", 10_000)
    path = tmp_path / "attack.tar.gz"
    make(path)
    expected = BOMBS[make].replace("200", "5")
    started = time.monotonic()
    with pytest.raises(ArchiveError, match=expected) as refused:
        unpack(path, tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200
    assert time.monotonic() - started < 20


def zip_of(path: Path, members: int, stated: int, compression: int = zipfile.ZIP_STORED) -> None:
    """A zip of empty members, with another number of them at its end."""
    with zipfile.ZipFile(path, "w", compression) as packed:
        for n in range(members):
            packed.writestr(zipfile.ZipInfo(str(n)), b"", compress_type=compression)
    data = bytearray(path.read_bytes())
    data[-14:-10] = struct.pack("<2H", stated, stated)
    path.write_bytes(data)


@pytest.mark.parametrize("stated", [500, 10])
def test_a_zip_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: int) -> None:
    """Whatever number it states: they are counted before they are held in memory."""
    zip_of(tmp_path / "many.zip", 500, stated)
    monkeypatch.setattr(archives, "MOST_MEMBERS", 400)
    with pytest.raises(ArchiveError, match="more than 400 files"):
        unpack(tmp_path / "many.zip", tmp_path / "out")


@pytest.mark.long
def test_a_zip_of_a_million_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as packed:
        for n in range(1_000_000):
            packed.writestr(zipfile.ZipInfo(str(n)), b"")
    with pytest.raises(ArchiveError, match="more than 100,000 files"):
        unpack(tmp_path / "many.zip", tmp_path / "out")


def test_a_zip_that_hides_members(tmp_path: Path) -> None:
    zip_of(tmp_path / "some.zip", 7, 5)
    with pytest.raises(ArchiveError, match="5 members expected, 7 found"):
        unpack(tmp_path / "some.zip", tmp_path / "out")


def test_a_zip_whose_directory_lacks_members(tmp_path: Path) -> None:
    """Cut to the first: its size and number say nothing of the others, whose bytes are there."""
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as packed:
        for name in ("a", "b"):
            packed.writestr(zipfile.ZipInfo(name), name)
        start = packed.fp.tell()
    data = whole.read_bytes()
    entry = 46 + 1
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, entry, start, 0)
    whole.write_bytes(data[: start + entry] + end)
    with pytest.raises(ArchiveError, match="no member, or two, at byte"):
        unpack(whole, tmp_path / "out")


@pytest.mark.parametrize("content", [b"a record", b""])
def test_a_zip_whose_damage_makes_a_folder_of_a_file(tmp_path: Path, content: bytes) -> None:
    """Damage in the directory ends the name after its slash."""
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("node/", "")
        packed.writestr("node/a.log", content)
    data = path.read_bytes()
    at = data.rfind(b"node/a.log")
    path.write_bytes(data[:at] + b"node/\0.log" + data[at + 10 :])
    with pytest.raises(ArchiveError, match="differ"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_whose_damage_empties_a_member(tmp_path: Path, method: int) -> None:
    """Its checksum and its packed size are zeros: nothing is unpacked, whose checksum is zero."""
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", method) as packed:
        packed.writestr("node/a.log", b"b")
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\1\2") + 16
    data[at : at + 8] = bytes(8)
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match="has 0 bytes, of which 1 are to be unpacked"):
        unpack(path, tmp_path / "out")


def test_a_zip_whose_unpacking_knows_no_limit(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("zeros", bytes(1 << 24))
    with pytest.raises(ArchiveError, match="compression method 12 is not supported"):
        unpack(tmp_path / "bomb.zip", tmp_path / "out")


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_no_file_is_left_out_by_name(tmp_path: Path, suffix: str) -> None:
    """Pipes, devices, links and archives within; the rest is unpacked."""
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in/pipe")
    (tmp_path / "in/inner.tar.gz").write_bytes(b"whatever")
    (tmp_path / "in/log").write_text("log")
    if suffix == "zip":
        with zipfile.ZipFile(tmp_path / "made.zip", "w") as packed:
            pipe = zipfile.ZipInfo("pipe")
            pipe.external_attr = 0o010644 << 16
            packed.writestr(pipe, b"")
            packed.write(tmp_path / "in/inner.tar.gz", "inner.tar.gz")
            packed.write(tmp_path / "in/log", "log")
        made = tmp_path / "made.zip"
    else:
        made = Path(shutil.make_archive(str(tmp_path / "made"), FORMATS[suffix], tmp_path / "in"))
        made = made.rename(tmp_path / f"made.{suffix}")
    assert sorted((name.removeprefix("./"), reason) for name, reason in unpack(made, tmp_path / "out")) == [
        ("inner.tar.gz", "archives inside archives are not opened: unpack it yourself"),
        ("pipe", "not a regular file"),
    ]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["log"]


def test_a_tar_that_ends_at_a_member(tmp_path: Path) -> None:
    """Or whose header is damaged: what follows is lost, so nothing of it is read."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in ("first", "second"):
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"data"))
    whole = made.getvalue()
    for damaged in (
        whole[:1024],
        whole[:1024] + b"x" + whole[1025:],
        whole[:1024] + bytes(512) + whole[1536:],
        whole[:1500],
    ):
        (tmp_path / "cut.tar").write_bytes(damaged)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with pytest.raises(ArchiveError, match="damaged"):
            unpack(tmp_path / "cut.tar", tmp_path / "out")


@pytest.mark.parametrize("suffix", ["tar", "tgz"])
def test_a_file_of_zeros_is_no_archive(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"zeros.{suffix}").write_bytes(bytes(4096))
    with pytest.raises(ArchiveError, match="holds no file"):
        unpack(tmp_path / f"zeros.{suffix}", tmp_path / "out")


def test_a_gzip_whose_checksum_does_not_match(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(header("file") + bytes(10240)))
    packed[-8] ^= 1
    (tmp_path / "flipped.tgz").write_bytes(packed)
    with pytest.raises(ArchiveError):
        unpack(tmp_path / "flipped.tgz", tmp_path / "out")


def test_each_of_many_archives_is_named(mini: Path, tmp_path: Path) -> None:
    """Their scratch folders are numbered: 1 is the beginning of 10."""
    archives = [tmp_path / f"captures-{n:02}.tar" for n in range(12)]
    for archive in archives:
        with tarfile.open(archive, "w") as packed:
            packed.add(mini, archive.stem)
    with opened_inputs([str(archive) for archive in archives], None) as inputs:
        assert [inputs.named(f"{root}: x") for root in inputs.roots] == [f"{path}: x" for path in archives]


def test_many_skipped_members_are_counted(tmp_path: Path) -> None:
    (tmp_path / "many.tar").write_bytes(header("null", tarfile.CHRTYPE) * 50 + bytes(1024))
    with opened_inputs([str(tmp_path / "many.tar")], None) as inputs:
        assert len(inputs.left_out) == 21
        assert inputs.left_out[-1].reason.endswith("30 more members were skipped")
