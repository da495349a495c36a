"""Runs a chat at the terminal: prints its events and result, reads what the person types, handles signals."""

import logging
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import click
from anyio.streams.memory import MemoryObjectReceiveStream

from septet.agents.ask import live_topic
from septet.agents.person import Ask, present
from septet.chat.export import base_text
from septet.chat.results import network_text, result_of
from septet.chat.versions import version_diff
from septet.cli.main import CurrentChat
from septet.cli.options import Bounds, Options, OutputOptions, more_budget, person_agent
from septet.cli.output import notify, put_exactly, ring
from septet.cli.person import ask_after_interrupt, ask_next, at_terminal, make_ask, with_bell
from septet.cli.progress import ProgressScreen
from septet.cli.result import print_result
from septet.common.text import clip, printable
from septet.domain.codec import encode
from septet.domain.events import (
    AnswerGiven,
    ModelAnswered,
    PersonSpoke,
    PlanProposed,
    Recorded,
    VersionWritten,
)
from septet.domain.messages import Request
from septet.domain.state import State
from septet.errors import (
    BadConfig,
    BadUsage,
    Interrupted,
    NeedsPerson,
    NoSandbox,
    SeptetError,
    Stopped,
    innermost,
)
from septet.ports import Bus, BusMessage, Sandbox
from septet.settings.home import trusted_folders
from septet.ways.endings import FINISHED, ending
from septet.ways.table import way_of
from septet.wiring.session import Session, open_session
from septet.wiring.upkeep import remove
from septet.workspace.delivery import check_destination

PROGRESS = (ModelAnswered, PlanProposed, VersionWritten, PersonSpoke)
"""What is worth keeping of a chat that could not start."""
SendMessage = Callable[[PersonSpoke], Awaitable[None]]


@asynccontextmanager
async def person_input(
    screen: ProgressScreen, send: SendMessage, output: OutputOptions, bus: Bus
) -> AsyncGenerator[Ask, None]:
    """Yield the function that asks the person; on a capable terminal with a footer that takes messages at any time,
    and shows what is being said.
    """
    if output.json or output.quiet or not screen.can_move:
        yield make_ask()
        return
    from septet.cli.footer import Footer

    footer = Footer(screen.footer_line, sys.stdin.isatty(), screen.live.screen_text)
    with warnings_on(screen):
        async with (
            bus.subscribe(live_topic(screen.state.chat)) as pieces,
            anyio.create_task_group() as tasks,
        ):
            await tasks.start(footer.show)
            tasks.start_soon(forward_messages, footer.messages, send)
            live = anyio.CancelScope()
            tasks.start_soon(follow_live, screen, pieces, footer.redraw, live)
            screen.footer = footer
            try:
                yield make_ask(footer.ask, footer.release_terminal)
            finally:
                live.cancel()
                footer.close()


async def follow_live(
    screen: ProgressScreen,
    pieces: AsyncIterator[BusMessage],
    redraw: Callable[[], None],
    scope: anyio.CancelScope,
) -> None:
    with scope:
        await screen.live.follow(pieces, redraw)


async def forward_messages(messages: MemoryObjectReceiveStream[str], send: SendMessage) -> None:
    """Store the person's messages; shielded, so that an interrupt right after sending loses none."""
    with anyio.CancelScope(shield=True):
        async for text in messages:
            await send(PersonSpoke(text=text))


@contextmanager
def warnings_on(screen: ProgressScreen) -> Generator[None, None, None]:
    """Show warnings, such as that a request is retried, among the events."""

    class Notice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            screen.say("septet", record.getMessage().removeprefix("septet: "))

    handler, logger = Notice(), logging.getLogger("septet")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


Prepare = Callable[[Session], Awaitable[str]]
OpenSession = Callable[[], AbstractAsyncContextManager[Session]]
UNSAFE = "WITHOUT A SANDBOX: programs run here with all your rights (--unsafe-local)"


def run_chat(prepare: Prepare, options: Options, open_: OpenSession = open_session) -> int:
    """Run the chat to its end and print the result; returns the exit code."""
    if options.output.out is not None:
        check_destination(options.output.out)
    return anyio.run(watch_chat, prepare, options, open_)


async def watch_chat(prepare: Prepare, options: Options, open_: OpenSession) -> int:
    async with open_() as session:
        sandbox = await session.sandbox(options.programs.unsafe_local)
        if options.model.record:
            session.models.record(options.model.record)
        known = {head.chat: head.seq for head in await session.store.chats()}
        chat = await prepare(session)
        outcome = outcome_of_command()
        outcome.command = session.command(chat)
        try:
            await print_new_events_as_json(session, chat, known.get(chat, 0), options.output)
            await prepare_to_watch(session, chat, options)
            return await run_to_end(session, chat, sandbox, options)
        except Exception as error:
            cause = innermost(error)
            if options.output.bell:
                ring()
            if chat not in known and await discard_failed_start(session, chat, cause):
                outcome.command = ""
                raise
            with suppress(SeptetError):
                outcome.state = await session.state(chat)
            if isinstance(cause, NeedsPerson | Interrupted) and not cause.remedy:
                raise type(cause)(cause.cause, outcome.command) from error
            raise


async def discard_failed_start(session: Session, chat: str, cause: BaseException) -> bool:
    """Delete a new chat that a wrong setting stopped before anything was made, so that it does not fill the list."""
    if not isinstance(cause, BadUsage | BadConfig | NoSandbox) or session.catalog is None:
        return False
    log = await session.log(chat)
    if any(isinstance(recorded.event, PROGRESS) for recorded in log):
        return False
    await remove(session, chat)
    return True


def outcome_of_command() -> CurrentChat:
    """The outcome object of the running command; error reporting reads the chat from it."""
    context = click.get_current_context(silent=True)
    return context.obj if context is not None and isinstance(context.obj, CurrentChat) else CurrentChat()


async def prepare_to_watch(session: Session, chat: str, options: Options) -> None:
    if options.model.debug:
        session.models.debug_listener = debug_log(session.home.data / "logs" / f"{chat}.log")
    if options.programs.unsafe_local:
        notify(f"septet: {UNSAFE}")
    if not options.output.quiet:
        introduce(await session.state(chat), options.output)


async def run_to_end(session: Session, chat: str, sandbox: Sandbox, options: Options) -> int:
    while True:
        while not await run_until_end_or_interrupt(session, chat, sandbox, options):
            pass
        state = await session.state(chat)
        print_result(state, options.output, session.command(chat))
        if options.output.bell:
            ring()
        code = await deliver_work(session, state, options)
        if not await ask_follow_up(session, state, options):
            return result_of(state).exit_code or code


async def deliver_work(session: Session, state: State, options: Options) -> int:
    """Deliver finished work into the person's folder, if the person agrees now or has agreed beforehand."""
    if state.base is None:
        return 0
    from septet.cli.deliver import DeliveryConsent, deliver_finished

    consent = options.consent
    trusted = state.workspace in trusted_folders(session.home) and consent.approve is None
    given = DeliveryConsent(
        agreed=consent.to_all or consent.approve == "edits" or trusted,
        asks=at_terminal() and consent.approve != "never",
        unsafe=options.programs.unsafe_local,
    )
    return await deliver_finished(session, state, given)


def introduce(state: State, output: OutputOptions) -> None:
    screen = ProgressScreen(state, output.plain)
    screen.say("septet", f"{state.chat}: {clip(state.goal.splitlines()[0], 120)}")
    if state.base is not None and not state.floor.turn_counts:
        screen.say(*base_text(state.base.survey))
    for card in state.work.data_cards:
        screen.say("septet", f"data: {card.card if output.verbose else card.card.splitlines()[0]}")
    if state.team.network != "off":
        screen.say("septet", f"network for programs: {network_text(state.team.network)}")


async def run_until_end_or_interrupt(session: Session, chat: str, sandbox: Sandbox, options: Options) -> bool:
    """Run the chat and print its events. Returns False if it must be run again because the person added a message."""
    before = await session.state(chat)
    talk = way_of(before.team).is_talk
    screen = ProgressScreen(before, options.output.plain, options.output.verbose or talk)
    caught: list[int] = []
    send, output = partial(session.append, chat), options.output
    async with catch_signals(caught), person_input(screen, send, output, session.bus) as silent_ask:
        ask = with_bell(silent_ask) if output.bell else silent_ask
        person = person_agent(options.consent, present(ask) if at_terminal() else None, session.command(chat))
        async with aclosing(session.perform(chat, sandbox, person)) as performance:
            async for recorded in performance:
                show_event(recorded, screen, output)
                await show_change(recorded, screen, session, output)
    has_unread, unsent_text = pending_input(screen)
    if not caught:
        return not await reopen_for(has_unread, unsent_text, session, chat, options.bounds)
    message = await ask_after_interrupt(unsent_text) if caught[0] == signal.SIGINT and at_terminal() else None
    if message is None:
        kind = Interrupted if caught[0] == signal.SIGINT else Stopped
        raise kind("interrupted and saved", session.command(chat))
    if message:
        last = (await session.state(chat)).seq
        await session.append(chat, PersonSpoke(text=message))
        await print_new_events_as_json(session, chat, last, output)
    return False


def pending_input(screen: ProgressScreen) -> tuple[bool, str]:
    """Return whether a message was sent that no member has read, and the text that was typed but not sent."""
    if screen.footer is None:
        return False, ""
    for text in screen.footer.queued:
        screen.say("person", text)
    return bool(screen.footer.queued), screen.footer.unsent_text


async def reopen_for(has_unread: bool, unsent_text: str, session: Session, chat: str, bounds: Bounds) -> bool:
    """Reopen a finished chat, unless a budget ended it, if a message came too late for any member to read it."""
    state = await session.state(chat)
    ended = ending(state)
    if has_unread and ended is not None and ended.reason in (*FINISHED, "claimed"):
        await session.reopen(chat, more_budget(state, bounds))
        return True
    if unsent_text.strip():
        notify(f"septet: not sent: {printable(unsent_text)}")
    return False


async def print_new_events_as_json(session: Session, chat: str, after: int, output: OutputOptions) -> None:
    """Print events stored outside the loop: the start, the person's messages, a raised budget."""
    if output.json:
        for recorded in await session.store.read(chat, after):
            put_exactly(encode(recorded).decode())


async def ask_follow_up(session: Session, state: State, options: Options) -> bool:
    """After an answer, let a person at the terminal ask again; the conversation and the workspace stay."""
    silent = options.consent.to_all or options.output.json or options.consent.approve == "never"
    if state.talk.answer is None or silent or not at_terminal():
        return False
    question = await ask_next()
    if question is None:
        command = session.command(state.chat)
        notify(f"septet: to ask again later: {command} 'your question'")
        return False
    await session.append(state.chat, PersonSpoke(text=question))
    await session.reopen(state.chat, more_budget(await session.state(state.chat), options.bounds))
    return True


def debug_log(path: Path) -> Callable[[Request], None]:
    """Return a function that appends each prompt to a file that only the user can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    notify(f"septet: the prompts are logged in {path}")

    def write(request: Request) -> None:
        with path.open("a", encoding="utf-8") as file:
            for message in request.messages:
                file.write(f"[{request.role} {request.step}, {message.role}]\n{message.text}\n\n")

    return write


def show_event(recorded: Recorded, screen: ProgressScreen, output: OutputOptions) -> None:
    if output.json:
        put_exactly(encode(recorded).decode())
    if not output.quiet:
        printed_last = isinstance(recorded.event, AnswerGiven) and sys.stdout.isatty() and not output.json
        screen.show(recorded, with_text=not printed_last)


async def show_change(
    recorded: Recorded, screen: ProgressScreen, session: Session, output: OutputOptions
) -> None:
    """Show a person at a terminal what a version changed in the one before it."""
    versions = screen.state.work.versions
    if not isinstance(recorded.event, VersionWritten) or len(versions) < 2:
        return
    if output.quiet or output.json or not screen.console.is_terminal:
        return
    old, new = versions[-2], versions[-1]
    with suppress(SeptetError):  # a content that is missing is no reason to stop the team
        diff = await version_diff(old, new, session.blobs)
        screen.show_change(diff, f"septet diff {screen.state.chat} v{old.number} v{new.number}")


@asynccontextmanager
async def catch_signals(caught: list[int]) -> AsyncGenerator[None, None]:
    """Cancel the block on SIGINT or SIGTERM; the log has everything up to that moment."""

    async def listen(scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                caught.append(number)
                scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()
