"""The chats that this server conducts: started, paused before a next turn, taken on step by step, stopped."""

import logging
from contextlib import aclosing
from time import time

import anyio
from anyio.abc import TaskGroup

from septet.agents.proxy import Answered
from septet.domain.events import ChatEnded, StopRequested, TurnOpened
from septet.domain.state import State
from septet.errors import Conflict, SeptetError, innermost, told
from septet.ports import Sandbox
from septet.runtime.log import Log
from septet.web.channels import Channels
from septet.web.frames import Standing, standing_frame
from septet.web.person import waiting
from septet.wiring.session import Session

QUIET = 30.0
"""Seconds without news after which nobody else can be at work on a chat that is asked to stop."""


class Performance:
    """One chat being conducted. `turns` is how many turns may still open; None is as many as it takes."""

    def __init__(self, turns: int | None) -> None:
        self.scope = anyio.CancelScope()
        self.finished = anyio.Event()
        self.turns = turns

    def may_open(self) -> bool:
        if self.turns is None:
            return True
        self.turns -= 1
        return self.turns >= 0


class Conducting:
    def __init__(self, session: Session, channels: Channels, tasks: TaskGroup) -> None:
        self._session = session
        self._channels = channels
        self._tasks = tasks
        self._performances: dict[str, Performance] = {}
        self._troubles: dict[str, SeptetError] = {}
        self._sandbox: Sandbox | None = None

    def standing(self, chat: str) -> Standing:
        performance = self._performances.get(chat)
        trouble = self._troubles.get(chat)
        return Standing(
            chat=chat,
            conducted=performance is not None,
            pausing=performance is not None and performance.turns is not None,
            trouble=trouble.cause if trouble else "",
            remedy=trouble.remedy if trouble else "",
        )

    def go_on(self, state: State, one_turn: bool = False) -> None:
        """Conduct the chat from where it is, unless we do already. Starting is resuming."""
        performance = self._performances.get(state.chat)
        if performance is not None:
            performance.turns = 1 if one_turn else None
        elif state.ended is None:
            opened = state.turn is not None and not state.turn.settled
            performance = Performance((0 if opened else 1) if one_turn else None)
            self._performances[state.chat] = performance
            self._troubles.pop(state.chat, None)
            self._tasks.start_soon(self._perform, state, performance)
        self.tell(state.chat)

    def pause(self, chat: str) -> None:
        """Let the turn that is open end, and open no other."""
        if performance := self._performances.get(chat):
            performance.turns = 0
            self.tell(chat)

    async def over(self, chat: str) -> None:
        """Wait until the conductor of a chat that has ended has put everything away."""
        if performance := self._performances.get(chat):
            await performance.finished.wait()

    async def rest(self, chat: str) -> None:
        """Stop conducting at once; the chat can be resumed."""
        if performance := self._performances.get(chat):
            performance.scope.cancel()
            await performance.finished.wait()

    async def stop(self, state: State, moved: float) -> None:
        """End the chat now where it is ours or nobody's; else its conductor ends it after its turn."""
        store, ours = self._session.store, state.chat in self._performances
        await store.append(state.chat, StopRequested(), after=None)
        await self.rest(state.chat)
        if ours or time() - moved > QUIET:
            log = await Log.open(store, state.chat)
            if log.state.ended is None:
                await log.record(ChatEnded(reason="stopped", detail="stopped by the person"))

    async def _perform(self, state: State, performance: Performance) -> None:
        try:
            async with self._channels.open(state.chat, state.seq) as channel:
                try:
                    with performance.scope:
                        await self._turns(state.chat, performance)
                finally:
                    channel.streams.end()
        except Conflict as conflict:
            self._troubles[state.chat] = Conflict(conflict.cause, "watch and steer it here")
        except Exception as error:  # one chat's defect must not end the server and the other chats
            self._troubles[state.chat] = told(error)
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet.web").exception("a chat could not go on")
        finally:
            del self._performances[state.chat]
            performance.finished.set()
            self.tell(state.chat)

    async def sandbox(self) -> Sandbox:
        """Where the programs of all chats run; NoSandbox is raised where there is none."""
        self._sandbox = self._sandbox or await self._session.sandbox()
        return self._sandbox

    async def _turns(self, chat: str, performance: Performance) -> None:
        sandbox = await self.sandbox()
        answered = True
        while answered:
            try:
                await self._until_answered(chat, sandbox, performance)
                answered = False
            except Answered:
                continue

    async def _until_answered(self, chat: str, sandbox: Sandbox, performance: Performance) -> None:
        person = waiting(self._session.store)
        async with aclosing(self._session.perform(chat, sandbox, person)) as events:
            async for recorded in events:
                if isinstance(recorded.event, TurnOpened) and not performance.may_open():
                    return

    def tell(self, chat: str) -> None:
        """Everybody who watches sees the same controls."""
        if channel := self._channels.of(chat):
            channel.tell(standing_frame(self.standing(chat)))
