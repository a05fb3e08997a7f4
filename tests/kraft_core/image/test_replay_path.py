"""The order of the records on a replay path."""

from kraft_core.image.replay_path import replay_order


def test_by_offset_and_where_batches_conflict_by_checksum():
    records = [
        (7, "CONFIG_RECORD", 1),
        (3, "CONFIG_RECORD", 9),
        (3, "TOPIC_RECORD", 12),
        (3, "CONFIG_RECORD", 2),
    ]
    assert sorted(records, key=lambda r: replay_order(*r)) == [
        (3, "TOPIC_RECORD", 12),
        (3, "CONFIG_RECORD", 2),
        (3, "CONFIG_RECORD", 9),
        (7, "CONFIG_RECORD", 1),
    ]


def test_a_transaction_holds_all_at_the_offsets_of_its_markers():
    types = ["END_TRANSACTION_RECORD", "PARTITION_RECORD", "TOPIC_RECORD", "CLEAR_ELR_RECORD"]
    found = sorted([*types, "BEGIN_TRANSACTION_RECORD"], key=lambda type_: replay_order(5, type_, 1))
    assert found == ["BEGIN_TRANSACTION_RECORD", *reversed(types)]
