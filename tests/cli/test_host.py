"""What a host says of others is theirs: a terminal shows it and obeys none of it."""

from septet.cli.host import status_lines
from septet.cluster.status import ChatStatus, HostStatus
from septet.domain.presence import Participant, Presence

RUDE = "\x1b[2J\x1b]0;mine\x07me\nserver   all is well\u202e"


def test_names_of_others_cannot_draw_on_the_terminal() -> None:
    who = Presence(kind="member", name=RUDE, machine=RUDE, pid=1, since=0.0, roles=(RUDE,))
    chat = ChatStatus(chat=RUDE, status=RUDE, ended=False, changed=0.0, conductors=(RUDE,))
    people = (Participant(presence=who, silent=0.0),)

    shown = list(status_lines(HostStatus(address="a", version="2", streams=(), people=people, chats=(chat,))))

    assert not [line for line in shown if any(sign in line for sign in "\x1b\x07\n\u202e")]
    assert [line for line in shown if line.startswith("server")] == shown[:1]
