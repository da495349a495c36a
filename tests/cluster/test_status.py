"""What a host says of its server: its streams, in one line each."""

import pytest
from nats.js.api import ClusterInfo, StreamConfig, StreamInfo, StreamState

from septet.cluster.status import StreamStatus, stream_status


@pytest.mark.parametrize(
    ("replicas", "cluster", "shown", "leader"),
    [
        (3, ClusterInfo(leader="one"), 3, "one"),
        (None, None, 1, ""),
        (1, ClusterInfo(leader=None), 1, ""),
    ],
)
def test_a_stream_is_told_with_its_replicas_and_who_leads_them(
    replicas: int | None, cluster: ClusterInfo | None, shown: int, leader: str
) -> None:
    info = StreamInfo(
        config=StreamConfig(name="chats", num_replicas=replicas),
        state=StreamState(messages=5, bytes=70, first_seq=1, last_seq=5, consumer_count=0),
        cluster=cluster,
    )
    expected = StreamStatus(name="chats", messages=5, bytes=70, replicas=shown, leader=leader)
    assert stream_status(info) == expected
