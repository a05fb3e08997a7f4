"""The order of the records on a replay path."""

from kraft_core.image.replay_path import ReplayRange, replay_order, replay_path


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


def test_of_a_topic_that_is_removed_or_made_nothing_lies_at_the_same_offset_before_it():
    types = ["PARTITION_CHANGE_RECORD", "TOPIC_RECORD", "REMOVE_TOPIC_RECORD"]
    found = sorted(types, key=lambda type_: replay_order(5, type_, types.index(type_)))
    assert found == [*reversed(types)]


def test_below_the_highest_epoch_is_what_its_log_has_there():
    """Epoch 2 has a record where epoch 1 has another one, on which epoch 3 goes on."""
    committed = ReplayRange(0, 5, 1, "committed")
    above, lost = ReplayRange(5, 7, 1, "undecided"), ReplayRange(5, 6, 2, "undecided")
    highest = ReplayRange(6, 8, 3, "uncommitted")
    ranges = [committed, above, lost, highest]
    below = [committed, ReplayRange(5, 6, 1, "undecided"), highest]
    assert replay_path(ranges, [], {2: 1, 3: 1}) == below
    assert replay_path(ranges, [], {2: 1, 3: 2}) == [committed, lost, highest]
    # Not known: what is committed is below every epoch, and all else may have been truncated.
    assert replay_path(ranges, [], {2: 1}) == [committed, highest]


def test_a_log_of_which_the_epoch_below_is_not_known_begins_behind_a_gap():
    below, above = ReplayRange(0, 5, 1, "undecided"), ReplayRange(5, 6, 2, "undecided")
    assert replay_path([below, above], [], {2: 1}) == [below, above]
    assert replay_path([below, above], [], {}) == [ReplayRange(0, 4, 1, "undecided"), above]


def test_epochs_that_name_each_other_end():
    """Of contested epochs: no order of captures may make a run endless."""
    ranges = [ReplayRange(0, 2, 1, "undecided"), ReplayRange(2, 4, 2, "undecided")]
    assert replay_path(ranges, [], {1: 2, 2: 1}) == ranges
    assert replay_path(ranges, [], {1: 2, 2: 2}) == [ReplayRange(0, 1, 1, "undecided"), ranges[1]]
