"""How a session runs its chats: with all members on this machine, or on many machines."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from msgspec import Struct

from septet.domain.presence import Participant
from septet.domain.teams import RoleSpec
from septet.ports import Sandbox
from septet.runtime.conductor import Agents, check_ended, perform
from septet.runtime.log import Listen, Log
from septet.team.floor import Floor


class Locks(Protocol):
    """Locks that let only one process of this machine run a chat."""

    def acquire(self, chat: str) -> None:
        """Lock the chat for this process. Raises Conflict, which names the owner."""
        ...

    def release(self, chat: str) -> None:
        """Unlock the chat; does nothing if this process does not hold the lock."""
        ...

    def close(self) -> None: ...


Play = Callable[[Log, Floor, Agents], Awaitable[None]]
"""Runs the chat to its end, with the agents on this machine."""
OpenSandbox = Callable[[bool], Awaitable[Sandbox]]
"""Opens the sandbox for programs; True asks for one without protection of our own."""
Conducting = Callable[[str, Listen], AbstractAsyncContextManager[Listen]]
"""A context around running a chat: sets up what that needs, and yields the listener for its events."""


async def play_here(log: Log, floor: Floor, agents: Agents) -> None:
    """Run the main loop to the chat's end."""
    await perform(log, floor, agents)
    check_ended(log.state, agents)


@asynccontextmanager
async def conduct_here(chat: str, listen: Listen) -> AsyncGenerator[Listen]:
    yield listen


def resume_command(chat: str) -> str:
    return f"septet resume {chat}"


def is_any_member(member: RoleSpec) -> bool:
    return True


async def no_participants() -> Sequence[Participant] | None:
    return None


async def no_orphans() -> Sequence[str]:
    return ()


class Deployment(Struct, frozen=True, kw_only=True):
    """The parts of a session that differ between one machine and many; the defaults are for one machine."""

    locks: Locks
    open_sandbox: OpenSandbox
    remote: bool = False
    """Whether members may be on other machines."""
    is_here: Callable[[RoleSpec], bool] = is_any_member
    """Whether the process that conducts the chat also runs this member."""
    play: Play = play_here
    while_conducting: Conducting = conduct_here
    command: Callable[[str], str] = resume_command
    """The command line that resumes the chat."""
    participants: Callable[[], Awaitable[Sequence[Participant] | None]] = no_participants
    """Who is on which machine; None if all members are on this one."""
    orphans: Callable[[], Awaitable[Sequence[str]]] = no_orphans
    """Chats whose conductor died. None on a single machine, where the person resumes them."""
