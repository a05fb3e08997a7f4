"""Plans of restorations from copies of the bundled captures."""

from __future__ import annotations

import shutil
from pathlib import Path

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.restore.choice import line_ends
from kraft_core.restore.replay import replayed
from kraft_core.restore.request import NewVoter, RestoreRequest
from kraft_core.restore.restoration import Restoration, restoration_of
from tests.kraft_core.evidence.golden import GOLDEN

VOTER = NewVoter(90, "dXmw1Ru2SU-5jEzTbqgRFA", "127.0.0.1", 19093)
OTHER = NewVoter(91, "b0mw1Ru2SU-5jEzTbqgRFA", "127.0.0.1", 19094)
MADE_AT = 1_795_300_000_000


def request(**stated: object) -> RestoreRequest:
    return RestoreRequest((VOTER,), MADE_AT, **stated)  # type: ignore[arg-type]


STOPPED = request(are_stopped=True)


def all_stated(captures: Path, **stated: object) -> RestoreRequest:
    """Every statement: all had stopped, and of voters 1 to 5 those that were not captured are gone."""
    captured = {d.meta.node_id for d in find_controller_dirs([captures]).directories if d.meta}
    gone = frozenset({*range(1, 6)} - captured)
    return request(gone=gone, are_stopped=True, brokers_stopped=True, **stated)


def copied(moment: str, target: Path, *nodes: int) -> Path:
    """A copy of a moment's captures, or of those of some nodes."""
    for source in sorted((GOLDEN / moment).glob("node-*")):
        if not nodes or int(source.name.removeprefix("node-")) in nodes:
            shutil.copytree(source, target / source.name)
    return target


def append_record(directory: ControllerDir, type_name: str, version: int, fields: dict[str, object]) -> None:
    """A record at the end of a log."""
    (directory,) = find_controller_dirs([directory.path]).directories
    log = replayed(directory)
    message = next(each for each in METADATA_RECORDS if each.type_name == type_name)
    value = write_metadata_value(message, version, message.default(version) | fields)
    at = log.image.timestamp
    batch = write_batch(log.end_offset, log.leader_epoch, [RawRecord(log.end_offset, at, None, value)])
    segment = directory.segments[-1].path
    segment.chmod(0o644)
    with segment.open("ab") as file:
        file.write(batch)


def planned(captures: Path, asked: RestoreRequest = STOPPED) -> Restoration:
    """The plan for the newest life of the only cluster id, or for that whose log ends at the chosen line."""
    lives = collect_lives(find_controller_dirs([captures]).directories)
    assert len({life.kafka_cluster_id for life in lives}) == 1
    named = [life for life in lives if asked.line in line_ends(conclude(life.facts))]
    chosen = named[0] if named else lives[-1]
    return restoration_of(chosen, asked, other_lives=[life for life in lives if life is not chosen])


def golden(moment: str, asked: RestoreRequest = STOPPED) -> Restoration:
    return planned(GOLDEN / moment, asked)


def losses(plan: Restoration) -> list[str]:
    return [loss.name for loss in plan.losses]
