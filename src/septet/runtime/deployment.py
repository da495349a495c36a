"""Where the members of a session's chats are and how their turns are played: on this machine, or on many."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from septet.domain.presence import Participant
from septet.domain.teams import RoleSpec
from septet.ports import Sandbox
from septet.runtime.conductor import Agents, check_ended, perform
from septet.runtime.log import Listen, Log
from septet.team.floor import Floor


class Locks(Protocol):
    """Who works on a chat, as far as this machine is concerned."""

    def acquire(self, chat: str) -> None:
        """Have the chat to ourselves until it is released. Raises Conflict, which says who has it."""
        ...

    def release(self, chat: str) -> None:
        """Nothing where it is not ours."""
        ...

    def close(self) -> None: ...


Play = Callable[[Log, Floor, Agents], Awaitable[None]]
"""Plays the chat to its end, with the agents that are here."""
OpenSandbox = Callable[[bool], Awaitable[Sandbox]]
"""Where programs will run; the flag asks for none of our own protection."""
Conducting = Callable[[str, Listen], AbstractAsyncContextManager[Listen]]
"""Around the work on a chat: what it needs before and after, and who is told of its events meanwhile."""


async def play_here(log: Log, floor: Floor, agents: Agents) -> None:
    """The one loop, to the chat's end."""
    await perform(log, floor, agents)
    check_ended(log.state, agents)


@asynccontextmanager
async def conduct_here(chat: str, listen: Listen) -> AsyncGenerator[Listen]:
    yield listen


def resume_command(chat: str) -> str:
    return f"septet resume {chat}"


def everybody(member: RoleSpec) -> bool:
    return True


async def no_participants() -> Sequence[Participant] | None:
    return None


async def no_orphans() -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a session is given; by itself everything of a chat happens on this machine."""

    locks: Locks
    open_sandbox: OpenSandbox
    remote: bool = False
    """Whether members may be on other machines."""
    is_here: Callable[[RoleSpec], bool] = everybody
    """Whether the member's turns are taken by the process that conducts the chat."""
    play: Play = play_here
    while_conducting: Conducting = conduct_here
    command: Callable[[str], str] = resume_command
    """What a person types to go on with the chat."""
    participants: Callable[[], Awaitable[Sequence[Participant] | None]] = no_participants
    """Who is where; nothing where everybody is here."""
    orphans: Callable[[], Awaitable[Sequence[str]]] = no_orphans
    """Chats whose conductor died; on one machine nobody else can tell, and the person resumes."""
