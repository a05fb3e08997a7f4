"""Numbers, times and lists as text. Times are milliseconds since the epoch, shown in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from dashboards.report.markup import Markup, el
from kraft_core.messages.uuid_text import ZERO_UUID

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def utc(ms: int) -> str:
    """A time to the second: 2026-11-21 09:15:16Z."""
    return moment(ms).strftime("%Y-%m-%d %H:%M:%SZ")


def day(ms: int) -> str:
    """The date: 2026-11-21."""
    return moment(ms).strftime("%Y-%m-%d")


def clock(ms: int) -> Markup:
    """A time of the day shown above it, as a <time> element: 09:15:16Z."""
    exact = moment(ms)
    return el("time", exact.strftime("%H:%M:%SZ"), datetime=exact.isoformat(timespec="milliseconds"))


def time_of(ms: int | None) -> Markup:
    """A time as a <time> element; a dash for none."""
    if ms is None:
        return el("span", "–", class_="none", title="not known")
    return el("time", utc(ms), datetime=moment(ms).isoformat(timespec="milliseconds"))


def time_by(ms: int | None, is_exact: bool | None) -> Markup:
    """A time; "at or before" it, where only a snapshot shows what happened (is_exact False)."""
    return time_of(ms) if is_exact is not False or ms is None else el("span", "at or before ", time_of(ms))


def duration(ms: int) -> str:
    """A length of time in its two largest units: 154 ms, 3.6 s, 2 min 5 s, 4 d 2 h."""
    if ms < SECOND:
        return f"{ms} ms"
    if ms < 10 * SECOND:
        return f"{ms / SECOND:.1f} s"
    for (unit, name), (lower, lower_name) in pairwise(UNITS):
        if ms >= unit:
            rest = ms % unit // lower
            return f"{ms // unit} {name} {rest} {lower_name}" if rest else f"{ms // unit} {name}"
    return f"{ms // SECOND} s"


def ago(ms: int, now: int) -> str:
    """The time before now: 8 h 3 min ago; for a later time: in 8 h 3 min."""
    if ms > now:
        return f"in {duration(ms - now)}"
    return f"{duration(now - ms)} ago"


def number(value: int | None) -> str:
    """With thousands separators; a dash for none."""
    return "–" if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """Bytes: 411 B, 6.3 KB, 1.2 GB (powers of 1,000)."""
    if value is None:
        return "–"
    amount, unit = float(value), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{value} B" if unit == "B" else f"{amount:.1f} {unit}"


def listed(words: Iterable[object]) -> str:
    """1, 2 and 3."""
    items = [str(w) for w in words]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, successive ones as a range: 0–2, 5."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in parts)


def short(directory_id: str) -> str:
    """The beginning of a directory id, enough to distinguish the replicas of a node; "" where it has none."""
    return "" if directory_id == ZERO_UUID else directory_id[:6]


def replica(node_id: int, directory_id: str) -> str:
    """node 1 (dlQnpR), or node 1 where its directory has no id."""
    directory = short(directory_id)
    return f"node {node_id} ({directory})" if directory else f"node {node_id}"


def directory(directory_id: str, whole: bool = False) -> Markup:
    """A directory id as code, a dash for none."""
    if directory_id == ZERO_UUID:
        return el("span", "–", class_="none", title="no directory id")
    if whole:
        return el("code", directory_id)
    return el("code", short(directory_id), title=directory_id)
