"""Cluster ids that a user gives to captures by their paths, if one id of meta.properties has several
clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jobs.runtime.outcome import Failure


@dataclass(frozen=True, slots=True)
class GivenClusters:
    """of_paths: (folder, archive or URL, cluster id). named: the path of a copy as the user names it."""

    of_paths: tuple[tuple[str, str], ...] = ()
    named: Callable[[str], str] = str

    def of(self, path: Path) -> str | None:
        """The id of what lies at a path or below it; of several paths that hold it, the longest decides."""
        if not self.of_paths:
            return None
        place = _absolute(self.named(str(path)))
        absolute = ((_absolute(given), id_) for given, id_ in self.of_paths)
        holding = [(len(given), id_) for given, id_ in absolute if _below(place, given)]
        return max(holding)[1] if holding else None


NONE_GIVEN = GivenClusters()


def given_clusters(
    words: Iterable[str], of_settings: Iterable[tuple[str, str]], named: Callable[[str], str]
) -> tuple[str | None, GivenClusters]:
    """The words of --cluster-id, each [PATH=]ID: the id without a path, if any, and those of paths.

    of_settings: (path, id); a word for the same path wins. Raises Failure.
    """
    plain: list[str] = []
    of_paths = dict(of_settings)
    for word in words:
        # The text of an id may end in the padding of base64.
        path, equals, id_ = word.rstrip("=").rpartition("=")
        if not equals and not _is_path(word.rstrip("=")):
            plain.append(word)
        elif not equals or not _is_path(path):
            raise Failure(f"--cluster-id {word}: give an existing path and an id, as in PATH=ID")
        else:
            of_paths[path] = id_ + "=" * (len(word) - len(word.rstrip("=")))
    if len(plain) > 1:
        raise Failure(f"--cluster-id takes one id without a path; {len(plain)} were given")
    for id_ in (*plain, *of_paths.values()):
        if "/" in id_:
            raise Failure(f"--cluster-id {id_}: a cluster id contains no slash")
    return (plain[0] if plain else None), GivenClusters(tuple(of_paths.items()), named)


def _is_path(text: str) -> bool:
    return "://" in text or Path(text).exists()


def _absolute(path: str) -> str:
    return path.rstrip("/") if "://" in path else str(Path(path).resolve())


def _below(place: str, of: str) -> bool:
    return place == of or place.startswith(f"{of}/")
