"""DeleteTopics, as the active controller answers it (ReplicationControlManager.deleteTopics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import DELETE_ENABLED
from kraft_core.topic_control.requests import MOST_RECORDS, RequestRefusedError, TopicRecord, TopicResult


def delete_topics(controller: ActiveController, names: Sequence[str]) -> list[TopicResult]:
    """The answer about each name of a request, in its order. Raises RequestRefusedError.

    Names are resolved to ids first, by what is committed (ControllerApis.deleteTopics).
    """
    controller.file.taken()
    is_enabled = controller.file.is_on(DELETE_ENABLED)
    assumed = controller.file.taken()
    if not is_enabled:
        raise RequestRefusedError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    results: list[TopicResult] = []
    deleted = 0
    for name, times in Counter(names).items():
        topic_id = controller.topic_id(name)
        if times > 1:
            result = TopicResult(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif topic_id is None:
            text = "This server does not host this topic-partition."
            result = TopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        elif deleted == MOST_RECORDS:
            # The controller takes a full list of records for an unknown fault of this topic.
            result = TopicResult(name, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            deleted += 1
            records = (TopicRecord("REMOVE_TOPIC_RECORD", 0, {"topicId": topic_id}),)
            result = TopicResult(name, records=records, assumed=assumed)
        results.append(result)
    return results
