"""Events that a server keeps in one message, both or neither: how they are numbered.

The server numbers messages. The last event of a message has the message's number times ten, and those before it
count down from there: sequences of a chat rise, and what ends in anything but 0 is the middle of a message.
"""

MOST = 10
"""Events of one message."""


def last_of(message: int) -> int:
    """The sequence of a message's last event."""
    return message * MOST


def message_of(seq: int) -> int:
    """The number of the newest message that is whole with the event `seq`."""
    return seq // MOST


def is_whole(seq: int) -> bool:
    """Whether somebody who has seen everything up to the event has not seen half of a message."""
    return seq % MOST == 0
