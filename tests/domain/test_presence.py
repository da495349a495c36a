"""Who is gone with chats in hand."""

from septet.domain.presence import GONE_AFTER, Participant, Presence, other_conductors, silent_conductors


def seen(name: str, *chats: str, silent: float = 0.0) -> Participant:
    presence = Presence(kind="conductor", name=name, machine="m", pid=1, since=0.0, chats=chats)
    return Participant(presence=presence, silent=silent, key=name)


def test_chats_of_who_fell_silent_are_orphans_unless_somebody_else_conducts_them() -> None:
    gone = silent_conductors([seen("ada", "one", "two", silent=GONE_AFTER), seen("bob", "two", "three")])
    assert [(one.key, one.presence.chats) for one in gone] == [("ada", ("one",))]


def test_who_is_there_leaves_no_orphans_and_who_fell_silent_without_chats_is_named_to_be_forgotten() -> None:
    assert silent_conductors([seen("bob", "one")]) == []
    assert [one.presence.chats for one in silent_conductors([seen("ada", silent=GONE_AFTER)])] == [()]


def test_rivals_are_others_who_are_there_with_the_same_chat() -> None:
    people = [
        seen("me", "one"),
        seen("ada", "one"),
        seen("bob", "two"),
        seen("eve", "one", silent=GONE_AFTER),
    ]
    assert [one.key for one in other_conductors(people, "one", "me")] == ["ada"]
