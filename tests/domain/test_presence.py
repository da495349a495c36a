"""Who is gone with chats in hand."""

from septet.domain.presence import GONE, Presence, Seen, orphaned, rivals


def seen(name: str, *chats: str, silent: float = 0.0) -> Seen:
    presence = Presence(kind="conductor", name=name, machine="m", pid=1, since=0.0, chats=chats)
    return Seen(presence=presence, silent=silent, key=name)


def test_chats_of_who_fell_silent_are_orphans_unless_somebody_else_conducts_them() -> None:
    gone = orphaned([seen("ada", "one", "two", silent=GONE), seen("bob", "two", "three")])
    assert [(one.key, one.presence.chats) for one in gone] == [("ada", ("one",))]


def test_who_is_there_leaves_no_orphans_and_who_fell_silent_without_chats_is_named_to_be_forgotten() -> None:
    assert orphaned([seen("bob", "one")]) == []
    assert [one.presence.chats for one in orphaned([seen("ada", silent=GONE)])] == [()]


def test_rivals_are_others_who_are_there_with_the_same_chat() -> None:
    people = [seen("me", "one"), seen("ada", "one"), seen("bob", "two"), seen("eve", "one", silent=GONE)]
    assert [one.key for one in rivals(people, "one", "me")] == ["ada"]
