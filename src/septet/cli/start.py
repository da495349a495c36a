"""Ways into a chat from the command line: a new one, a rehearsed one, one that exists."""

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from septet.agents.person import question, understood
from septet.chat.versions import version_named
from septet.cli.options import Options, bounded, check_questions, consulted, is_given, more
from septet.cli.output import notify
from septet.cli.person import WELCOME, ask_line, at_terminal
from septet.cli.watch import Prepare
from septet.common.documents import read_text
from septet.demos.catalogue import load_rehearsal, nearest_rehearsal, start_rehearsal, team_of
from septet.domain.events import DataDescribed
from septet.domain.plans import Plan, Refusal, parse_plan
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadConfig, BadUsage, Conflict
from septet.settings.group_chats import each_by_its_own
from septet.ways.endings import is_over
from septet.wiring.forks import bring_back
from septet.wiring.session import Session, check_model, checked_goal, thinking, with_model

REHEARSAL = (
    "a rehearsal: the team's words were written beforehand; its code, tests and pictures are really run here"
)


class Start(NamedTuple):
    """Where a new chat works, what it is called and which plan it begins with."""

    workspace: Path | None = None
    name: str = ""
    plan: Path | None = None


def begin(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """A new chat. A person at the terminal is also asked before every review.

    What makes no sense is said at once; what stands in the way, before a model is looked for.
    """
    plan = read_plan(start.plan) if start.plan else None
    team = each_by_its_own(team) if team.config and options.model else team
    check_questions(team, options)
    if is_given("model"):
        check_model(team, options.model)

    async def prepare(session: Session) -> str:
        words = goal
        if words is None:
            notify(WELCOME)
            words = await ask_line("> ")
        checked_goal(words)
        await session.check_new(start.name, absolute(start.workspace))
        model = await model_for(team, session, options)
        if model is None:
            return await rehearse(nearest_rehearsal(words), start.workspace, options)(session)
        spec = with_model(bounded(consulted(team, options, at_terminal()), options), model)
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
    from septet.workspace.data_cards import describe, read_dictionary

    meanings = read_dictionary(options.dictionary)
    return [await describe(str(absolute(path)), meanings) for path in options.data]


async def model_for(team: TeamSpec, session: Session, options: Options) -> str | None:
    """What members without a model of their own think with; nothing is looked for when all have one."""
    session.open_client(team)
    if all(member.model for member in thinking(team)):
        return options.model
    from septet.cli.download import model_to_use

    return await model_to_use(session.models, options)


def read_plan(path: Path) -> Plan:
    plan = parse_plan(read_text(path))
    if isinstance(plan, Refusal):
        raise BadConfig(f"{path} is no plan", plan.reason)
    return plan


def rehearse(which: str, workspace: Path | None, options: Options) -> Prepare:
    """A new chat whose members read from a script."""

    async def prepare(session: Session) -> str:
        team = bounded(team_of(load_rehearsal(which)), options)
        asked = options.step or options.approve in ("ask", "never")
        agreed = team if asked else replace(team, approve="auto")
        chat = await start_rehearsal(session, which, agreed, absolute(workspace))
        if not options.quiet:
            notify(f"septet: {REHEARSAL}")
        return chat

    return prepare


def proceed(name: str | None, message: str | None, options: Options, version: str | None = None) -> Prepare:
    """A chat that exists: from an older version, with the person's answer, and with more room if it had ended."""

    async def prepare(session: Session) -> str:
        heads = await session.store.chats()
        if not heads and not name:
            raise nothing_to_resume(session)
        if options.network or options.packages or options.run_as:
            raise BadUsage(
                "a chat keeps the network, packages and run-as that it began with", "start another"
            )
        chat = await session.find(name) if name else heads[0].chat
        state = await session.state(chat)
        if options.step and not state.team.stepwise:
            raise BadUsage(
                "a chat keeps the step mode that it began with", "start another, or leave out --step"
            )
        await taken(session, state, message)
        wanted = None if version is None else version_named(state, version)
        if wanted is not None and wanted != state.version:
            await bring_back(session, state, wanted, "to go on from there")
        if message:
            await say(session, state, message)
        if state.ended is not None and (not is_over(state) or message or wanted):
            await session.reopen(chat, more(state, options))
        return chat

    return prepare


async def taken(session: Session, state: State, message: str | None) -> None:
    """Nobody else may go on with it from here. Who does already, is told what the person says."""
    try:
        session.take(state.chat)
    except Conflict as conflict:
        if not message or state.ended is not None:
            raise
        await say(session, state, message)
        raise Conflict(conflict.cause, "it has been told what you say; watch it there") from conflict


async def say(session: Session, state: State, message: str) -> None:
    """What the person says: the answer to what the chat waits for, else a remark."""
    for event in understood(state, question(state), message):
        await session.tell(state.chat, event)


def nothing_to_resume(session: Session) -> BadUsage:
    """No chat is here; one that was conducted from here may be meant."""
    if session.elsewhere or not (notes := session.conducted.all()):
        return BadUsage("there is no chat to resume", "start one with septet run")
    return BadUsage(f"the chat '{notes[0].chat}' is on {notes[0].server}", notes[0].command)


def take_up(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """The chat of that name, told what is new in the goal; where there is none, it begins."""

    async def prepare(session: Session) -> str:
        if start.name not in {head.chat for head in await session.store.chats()}:
            if goal is None and not at_terminal():
                raise BadUsage(f"there is no project '{start.name}' yet", "say what it shall be")
            return await begin(goal, team, start, options)(session)
        known = (await session.state(start.name)).goal
        news = goal.strip() if goal and goal.strip() != known.strip() else None
        return await proceed(start.name, news, options)(session)

    return prepare


def absolute(folder: Path | None) -> Path | None:
    return folder.expanduser().absolute() if folder else None
