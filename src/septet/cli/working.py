"""Running a chat from the command line: prepare it, watch it, say how it ended."""

import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from msgspec.structs import replace

from septet.agents.proxy import present, question, understood
from septet.chat.exports import answer_words
from septet.chat.reports import reach, report_table, status
from septet.chat.results import result_of
from septet.cli.live import Screen, write_line
from septet.cli.options import Options
from septet.cli.person import WELCOME, ask_line, ask_next, asking, at_terminal
from septet.domain.codec import ENCODER, encode
from septet.domain.events import AnswerGiven, DataDescribed, PersonSpoke, Recorded
from septet.domain.plans import Plan, Refusal, parse_plan, plan_text
from septet.domain.state import State
from septet.domain.talk import Request
from septet.domain.teams import Budget, TeamSpec
from septet.errors import BadConfig, BadUsage
from septet.ports import Sandbox
from septet.team.talking import last_words
from septet.team.teams import TEAMS
from septet.tools.documents import read_text
from septet.wiring.rehearsals import load_rehearsal, nearest_rehearsal, start_rehearsal, team_of
from septet.wiring.session import Session, checked_goal, open_session, thinking, with_model

Prepare = Callable[[Session], Awaitable[str]]
Opening = Callable[[], AbstractAsyncContextManager[Session]]
REHEARSAL = (
    "a rehearsal: the team's words were written beforehand; its code, tests and pictures are really run here"
)
UNSAFE = "WITHOUT A SANDBOX: programs run here with all your rights (--unsafe-local)"


class Start(NamedTuple):
    """Where a new chat works, what it is called and which plan it begins with."""

    workspace: Path | None = None
    name: str = ""
    plan: Path | None = None


def begin(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """A new chat. A person at the terminal is also asked before every review."""

    async def prepare(session: Session) -> str:
        plan = read_plan(start.plan) if start.plan else None
        words = goal
        if words is None:
            write_line(sys.stderr, WELCOME)
            words = await ask_line("> ")
        checked_goal(words)
        present = at_terminal() and not options.yes
        policy = "ask" if present and team in TEAMS.values() else team.packages
        consulted = replace(team, consult=team.consult or present, packages=policy)
        model = await model_for(team, session, options)
        if model is None:
            return await rehearse(nearest_rehearsal(words), start.workspace, options)(session)
        spec = with_model(bounded(consulted, options), model)
        chat = await session.start(
            words, spec, absolute(start.workspace), start.name, await described(options)
        )
        if plan is not None:
            await session.propose(chat, plan)
        return chat

    return prepare


async def described(options: Options) -> list[DataDescribed]:
    """The cards of the data files; what is wrong with one is said before the chat begins."""
    if not options.data:
        return []
    from septet.tools.data_cards import describe, read_dictionary

    meanings = read_dictionary(options.dictionary)
    return [await describe(str(absolute(path)), meanings) for path in options.data]


async def model_for(team: TeamSpec, session: Session, options: Options) -> str | None:
    """What members without a model of their own think with; nothing is looked for when all have one."""
    if all(member.model for member in thinking(team)):
        return options.model
    from septet.cli.fetching import model_to_use

    return await model_to_use(session.models, options.model, options.yes)


def read_plan(path: Path) -> Plan:
    plan = parse_plan(read_text(path))
    if isinstance(plan, Refusal):
        raise BadConfig(f"{path} is no plan", plan.reason)
    return plan


def rehearse(which: str, workspace: Path | None, options: Options) -> Prepare:
    """A new chat whose members read from a script."""

    async def prepare(session: Session) -> str:
        write_line(sys.stderr, f"septet: {REHEARSAL}")
        team = bounded(team_of(load_rehearsal(which)), options)
        agreed = team if options.step else replace(team, approve="auto")
        return await start_rehearsal(session, which, agreed, absolute(workspace))

    return prepare


def proceed(name: str | None, message: str | None, options: Options) -> Prepare:
    """A chat that exists: with the person's answer, and with more room if it had ended."""

    async def prepare(session: Session) -> str:
        heads = await session.store.chats()
        if not heads:
            raise BadUsage("there is no chat to resume", "start one with septet run")
        if options.network or options.packages or options.run_as:
            raise BadUsage(
                "a chat keeps the network, packages and run-as that it began with", "start another"
            )
        chat = await session.find(name) if name else heads[0].chat
        state = await session.state(chat)
        if message:
            asked = question(state)
            event = understood(state, asked, message) if asked else PersonSpoke(text=message)
            await session.tell(chat, event)
        if state.ended is not None and (state.ended.reason != "done" or message):
            await session.reopen(chat, more(state, options))
        return chat

    return prepare


def bounded(team: TeamSpec, options: Options) -> TeamSpec:
    """The team within the bounds that the command line sets."""
    given = {
        "rounds": options.rounds,
        "cost": options.max_cost,
        "tokens": options.max_tokens,
        "seconds": options.max_time,
    }
    budget = replace(team.budget, **{name: value for name, value in given.items() if value is not None})
    approve = "auto" if options.yes else "ask" if options.step else team.approve
    run, network = options.run_as or team.run, options.network or team.network
    bound = replace(team, budget=budget, approve=approve, stepwise=options.step or team.stepwise)
    return replace(bound, run=run, network=network, packages=options.packages or team.packages)


def more(state: State, options: Options) -> Budget:
    """As much again as the chat had, or what the command line says, on top of what is used up."""
    first = bounded(state.team, options).budget
    used = [rounds_used(state), state.spent.usage.total, state.spent.cost, state.seconds]
    limits = [first.rounds, first.tokens, first.cost, first.seconds]
    rounds, tokens, cost, seconds = (
        None if limit is None else limit + spent for limit, spent in zip(limits, used, strict=True)
    )
    return Budget(
        rounds=None if rounds is None else int(rounds),
        tokens=None if tokens is None else int(tokens),
        cost=cost,
        seconds=seconds,
    )


def rounds_used(state: State) -> int:
    """A round is a version where there are versions to be made, else anybody's turn."""
    iterating = state.team.floor in ("plan_then_iterate", "reason_and_act")
    return state.turns.get("coder", 0) if iterating else sum(state.turns.values())


def absolute(folder: Path | None) -> Path | None:
    return folder.expanduser().absolute() if folder else None


def work(prepare: Prepare, options: Options, opening: Opening = open_session) -> int:
    """Run the chat to its end and print the result; returns the exit code."""
    return anyio.run(watch, prepare, options, opening)


async def watch(prepare: Prepare, options: Options, opening: Opening) -> int:
    async with opening() as session:
        sandbox = await session.sandbox(options.unsafe_local)
        if options.record:
            session.models.record(options.record)
        chat = await prepare(session)
        if options.debug:
            session.models.overhear = overhearing(session.home.data / "logs" / f"{chat}.log")
        if options.unsafe_local:
            write_line(sys.stderr, f"septet: {UNSAFE}")
        if not options.quiet:
            introduce(await session.state(chat), options)
        while True:
            await follow(session, chat, sandbox, options)
            state = await session.state(chat)
            conclude(state, options)
            if not await goes_on(session, state, options):
                return result_of(state).exit_code


def introduce(state: State, options: Options) -> None:
    screen = Screen(state, options.plain)
    screen.say("septet", f"{state.chat}: {state.goal.splitlines()[0][:120]}")
    for card in state.cards:
        screen.say("septet", f"data: {card.card if options.verbose else card.card.splitlines()[0]}")
    if state.team.network != "off":
        screen.say("septet", f"network for programs: {reach(state.team.network)}")


async def follow(session: Session, chat: str, sandbox: Sandbox, options: Options) -> None:
    """Perform until the chat ends, seen by whoever watches."""
    before = await session.state(chat)
    talk = before.team.floor == "group_chat"
    with Screen(before, options.plain, options.verbose or talk) as screen:
        person = present(asking(screen.rest)) if at_terminal() else None
        async with interruptible(chat), aclosing(session.perform(chat, sandbox, person)) as performance:
            async for recorded in performance:
                tell(recorded, screen, options)


async def goes_on(session: Session, state: State, options: Options) -> bool:
    """After an answer, a person at the terminal may ask on; the threads and the workspace stay."""
    if state.answered is None or options.yes or options.json or not at_terminal():
        return False
    asked = await ask_next()
    if asked is None:
        write_line(sys.stderr, f"septet: ask on another day: septet resume {state.chat} 'your question'")
        return False
    await session.tell(state.chat, PersonSpoke(text=asked))
    await session.reopen(state.chat, more(await session.state(state.chat), options))
    return True


def overhearing(path: Path) -> Callable[[Request], None]:
    """Everything that a model is told goes into a file that only its person can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    write_line(sys.stderr, f"septet: what the models are told is in {path}")

    def overhear(request: Request) -> None:
        with path.open("a", encoding="utf-8") as file:
            for message in request.messages:
                file.write(f"[{request.role} {request.step}, {message.role}]\n{message.text}\n\n")

    return overhear


def tell(recorded: Recorded, screen: Screen, options: Options) -> None:
    if options.json:
        write_line(sys.stdout, encode(recorded).decode())
    if not options.quiet:
        shown_last = isinstance(recorded.event, AnswerGiven) and sys.stdout.isatty() and not options.json
        screen.hear(recorded, aloud=not shown_last)


def conclude(state: State, options: Options) -> None:
    """The result is all that stdout carries."""
    if options.json:
        write_line(sys.stdout, ENCODER.encode(result_of(state)).decode())
        return
    if state.plan is not None and state.approved and not state.versions:
        write_line(sys.stdout, plan_text(state.plan).rstrip())
        return
    if state.answered is not None:
        write_line(sys.stdout, answer_words(state.answered))
        return
    if state.team.floor == "group_chat":
        write_line(sys.stdout, last_words(state) or status(state))
        return
    width = shutil.get_terminal_size((120, 24)).columns
    parts = [
        report_table(state, width),
        f"{state.chat}: {status(state)}",
        f"the program is in {state.workspace}",
    ]
    write_line(sys.stdout, "\n".join(part for part in parts if part))


@asynccontextmanager
async def interruptible(chat: str) -> AsyncGenerator[None, None]:
    """SIGINT and SIGTERM stop at once what runs; the log has everything up to that moment."""
    caught: list[int] = []

    async def listen(scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                caught.append(number)
                scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()
    if caught:
        write_line(sys.stderr, f"septet: interrupted and saved: septet resume {chat}")
        sys.exit(128 + caught[0])
