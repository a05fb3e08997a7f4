"""What holds for every life of a cluster."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.format.codec import read_metadata_value, write_metadata_value
from kraft_core.image.change import Change
from kraft_core.image.differences import differences
from kraft_core.image.history import History, rows
from kraft_core.image.image import Image
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.tables import KINDS
from kraft_core.image.tree import Directory, Leaf, Node, find, leaf, paths, root
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kraft_core.image.worlds import Row, history, lives, replay
from tests.kraft_core.image.worlds import rows as as_rows

# A busy machine is no reason to fail.
unhurried = settings(deadline=None)
MESSAGES = {message.type_name: message for message in METADATA_RECORDS}
MARKERS = {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"}


def cut(records: list[Row], data: st.DataObject) -> int:
    """A place between two records where no transaction is open: there a snapshot may be taken."""
    image, places = Image(), [0]
    for position, record in enumerate(records, start=1):
        image.apply(record)
        if not image.in_transaction:
            places.append(position)
    return data.draw(st.sampled_from(places))


def snapshot_of(image: Image) -> Image:
    """The image as it comes back from the records of its snapshot."""
    return Image.of_snapshot(
        as_rows(list(image.to_records())), image.offset + 1, image.leader_epoch, image.timestamp
    )


@unhurried
@given(lives)
def test_no_record_of_a_valid_life_is_refused(records):
    assert replay(records).refusals == []


@unhurried
@given(lives, st.data())
def test_snapshot_and_rest_equal_the_whole_log(records, data):
    place = cut(records, data)
    snapshot = snapshot_of(replay(records[:place]))
    assert list(differences(replay(records[place:], snapshot), replay(records))) == []


@unhurried
@given(lives)
def test_a_snapshots_records_survive_the_codec(records):
    image = replay(records)
    through = []
    for type_, value in image.to_records():
        message = MESSAGES[type_]
        read = read_metadata_value(write_metadata_value(message, max(message.versions), value))
        through.append((type_, read.value))
    assert list(differences(replay(as_rows(through)), image)) == []


@unhurried
@given(lives)
def test_every_type_of_record_survives_the_codec_on_its_way(records):
    through = []
    for record in records:
        message = MESSAGES[record.type]
        read = read_metadata_value(write_metadata_value(message, max(message.versions), record.value))
        through.append(Row(record.offset, record.leader_epoch, record.timestamp, record.type, read.value))
    assert replay(through).tables == replay(records).tables


@unhurried
@given(lives)
def test_a_transaction_is_its_records_at_once_or_nothing(records):
    plain = [record for record in records if record.type not in MARKERS]
    wrapped = [
        Row(-1, 0, 0, "BEGIN_TRANSACTION_RECORD", {"name": None}),
        *plain,
        Row(len(records), 9, 9, "END_TRANSACTION_RECORD", {}),
    ]
    image = replay(wrapped[:-1])
    assert image.tables == Image().tables
    assert image.in_transaction
    made = image.apply(wrapped[-1])
    assert image.tables == replay(plain).tables
    assert (image.offset, image.leader_epoch, image.timestamp) == (len(records), 9, 9)
    things = [(each.change.kind, each.change.key) for each in made]
    assert len(things) == len(set(things))
    aborted = replay([*wrapped[:-1], Row(len(records), 9, 9, "ABORT_TRANSACTION_RECORD", {"reason": None})])
    assert aborted.tables == Image().tables


@unhurried
@given(lives, st.data())
def test_a_copy_is_independent(records, data):
    place = data.draw(st.integers(0, len(records)))
    image = replay(records[:place])
    twin = image.copy()
    replay(records[place:], twin)
    assert image.tables == replay(records[:place]).tables
    assert twin.tables == replay(records).tables


@unhurried
@given(lives, lives)
def test_differences_lead_from_one_image_to_the_other(some, others):
    before, after = replay(some), replay(others)
    for difference in list(differences(before, after)):
        assert difference.before != difference.after
        before.tables.put(Change(difference.kind, difference.key, difference.after))
    assert before.tables == after.tables
    assert before.tables.topic_ids == after.tables.topic_ids


@unhurried
@given(lives, st.data())
def test_history_at_an_offset_is_the_image_there(records, data):
    offset = data.draw(st.integers(-1, len(records) - 1))
    then = replay(records[: offset + 1])
    replayed = history(records)
    for kind in KINDS:
        standing = {
            version.key: version.value
            for version in replayed[kind]
            if version.valid_from_offset <= offset
            and (version.valid_to_offset is None or offset < version.valid_to_offset)
        }
        assert standing == dict(then.tables.items(kind))


@unhurried
@given(lives)
def test_versions_of_a_thing_never_overlap_and_are_never_empty(records):
    for versions in history(records).values():
        ends: dict[object, int] = {}
        for version in versions:
            end = version.valid_to_offset
            assert end is None or end > version.valid_from_offset
            assert version.valid_from_offset >= ends.get(version.key, -1)
            assert (end is None) == (version.ended_by is None) == (version.valid_to_at is None)
            ends[version.key] = len(records) if end is None else end


@unhurried
@given(lives, st.data())
def test_history_from_a_snapshot_equals_the_rest_of_the_whole_history(records, data):
    place = cut(records, data)
    whole = history(records)
    rest = history(records[place:], snapshot_of(replay(records[:place])))
    for kind in KINDS:
        later = [version for version in whole[kind] if version.valid_from_offset >= place]
        assert [version for version in rest[kind] if version.known_from_offset is None] == later
        from_snapshot = [version for version in rest[kind] if version.known_from_offset is not None]
        assert all(version.known_from_offset == place - 1 for version in from_snapshot)
        standing = [
            version
            for version in whole[kind]
            if version.valid_from_offset < place
            and (version.valid_to_offset is None or version.valid_to_offset >= place)
        ]
        assert sorted((repr(v.key), v.valid_to_offset, v.ended_by) for v in from_snapshot) == sorted(
            (repr(v.key), v.valid_to_offset, v.ended_by) for v in standing
        )


@unhurried
@given(lives, st.data())
def test_a_snapshot_of_the_same_state_in_mid_history_changes_nothing(records, data):
    place = cut(records, data)
    replayed = History()
    for record in records[:place]:
        replayed.apply(record)
    replayed.load(snapshot_of(replayed.image))
    for record in records[place:]:
        replayed.apply(record)
    assert {kind: replayed.versions(kind) for kind in KINDS} == history(records)


@unhurried
@given(lives)
def test_every_thing_is_in_the_tree_at_its_paths(records):
    image = replay(records)
    tree = root(image)
    for kind in KINDS:
        for _, value in image.tables.items(kind):
            for path in paths(kind, value):
                (_, node), *others = find_by_name(tree, path)
                assert others == []
                assert isinstance(node, Directory) or node == leaf(kind, value)


@unhurried
@given(lives)
def test_the_tree_has_a_node_for_every_name_it_gives(records):
    def walk(node: Node) -> int:
        if isinstance(node, Leaf):
            return 1
        names = list(node.names())
        assert len(names) == len(set(names))
        assert all(node.child(name) is not None for name in names)
        return sum(walk(child) for _, child in node.children())

    image = replay(records)
    things = sum(image.tables.count(kind) for kind in KINDS)
    assert walk(root(image)) >= things


@unhurried
@given(lives)
def test_no_secret_is_in_rows_or_tree(records):
    image = replay(records)
    shown = repr(list(walk_leaves(root(image)))) + repr(list(image.tables.items("scram_users")))
    for versions in history(records).values():
        shown += repr(list(rows(versions)))
    for _, user in image.tables.items("scram_users"):
        for secret in (user.salt, user.stored_key, user.server_key):
            assert secret.hex() not in shown
            assert repr(secret) not in shown
    for _, token in image.tables.items("delegation_tokens"):
        assert token.token_id not in shown


@unhurried
@given(lives)
def test_to_records_is_in_the_order_that_replays(records):
    types = [type_ for type_, _ in replay(records).to_records()]
    assert types == sorted(types, key=lambda type_: _POSITION[type_])


_POSITION = {
    "FEATURE_LEVEL_RECORD": 0,
    "ZK_MIGRATION_STATE_RECORD": 1,
    "REGISTER_CONTROLLER_RECORD": 2,
    "REGISTER_BROKER_RECORD": 3,
    "TOPIC_RECORD": 4,
    "PARTITION_RECORD": 5,
    "CONFIG_RECORD": 6,
    "CLIENT_QUOTA_RECORD": 7,
    "PRODUCER_IDS_RECORD": 8,
    "ACCESS_CONTROL_ENTRY_RECORD": 9,
    "USER_SCRAM_CREDENTIAL_RECORD": 10,
    "DELEGATION_TOKEN_RECORD": 11,
}


def test_rows_name_their_columns_once_for_a_kind():
    assert set(BY_NAME) == set(KINDS)


def find_by_name(tree, path):
    """find, with characters that mean something in patterns taken as they are."""
    return find(
        tree,
        tuple(
            "".join(f"\\{c}" if c in "*?{}\\" else c for c in part) if any(c in "*?{" for c in part) else part
            for part in path
        ),
    )


def walk_leaves(node):
    if isinstance(node, Leaf):
        yield node
    else:
        for name, child in node.children():
            yield name
            yield from walk_leaves(child)
