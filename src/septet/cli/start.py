"""How a command gets its chat: a new one, a demo, one that exists."""

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from septet.chat.versions import version_named
from septet.cli.options import (
    DataFiles,
    Options,
    check_questions,
    is_given,
    more_budget,
    with_options,
    with_questions,
)
from septet.cli.output import notify
from septet.cli.person import WELCOME, ask_line, at_terminal
from septet.cli.watch import Prepare
from septet.common.documents import read_text
from septet.demos.catalogue import demo_team, load_demo, nearest_demo, start_demo
from septet.domain.events import DataDescribed
from septet.domain.plans import Plan, Refusal, parse_plan
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadConfig, BadUsage, Conflict
from septet.settings.group_chats import each_by_its_own
from septet.team.questions import question, read_answer
from septet.ways.endings import is_over
from septet.ways.table import thinkers
from septet.wiring.forks import bring_back
from septet.wiring.session import Session, check_model, checked_goal, with_model
from septet.workspace.git import repository_of

DEMO = (
    "a demo: the members' answers were written beforehand; the code, tests and pictures are really run here"
)


class Start(NamedTuple):
    """Where a new chat works, what it is called and which plan it begins with."""

    workspace: Path | None = None
    name: str = ""
    plan: Path | None = None


def repository_here() -> Path | None:
    """The repository that the person is in. A home folder that is one as a whole is not meant by that."""
    found = repository_of(Path.cwd())
    return None if found == Path.home().resolve() else found


def begin(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """A new chat. A person at the terminal is also asked before every review.

    What makes no sense is said at once; what stands in the way, before a model is looked for.
    """
    plan = read_plan(start.plan) if start.plan else None
    team = each_by_its_own(team) if team.config and options.model.model else team
    check_questions(team, options.consent)
    if is_given("model"):
        check_model(team, options.model.model)

    async def prepare(session: Session) -> str:
        words = goal
        if words is None:
            notify(WELCOME)
            words = await ask_line("> ")
        checked_goal(words)
        await session.check_new_chat(start.name, absolute(start.workspace))
        model = await model_for(team, session, options)
        if model is None:
            return await begin_demo(nearest_demo(words), start.workspace, options)(session)
        asking = with_questions(team, options.consent, at_terminal())
        spec = with_model(with_options(asking, options), model)
        data = await describe_data(options.files)
        chat = await session.start(words, spec, absolute(start.workspace), start.name, data)
        if plan is not None:
            await session.propose(chat, plan)
        return chat

    return prepare


async def describe_data(files: DataFiles) -> list[DataDescribed]:
    """The cards of the data files; what is wrong with one is said before the chat begins."""
    if not files.data:
        return []
    from septet.workspace.data_cards import describe, read_dictionary

    meanings = read_dictionary(files.dictionary)
    return [await describe(str(absolute(path)), meanings) for path in files.data]


async def model_for(team: TeamSpec, session: Session, options: Options) -> str | None:
    """What members without a model of their own think with; nothing is looked for when all have one."""
    session.adopt_client_config(team)
    if all(member.model for member in thinkers(team)):
        return options.model.model
    from septet.cli.download import model_to_use

    return await model_to_use(session.models, options.model, options.consent.to_all)


def read_plan(path: Path) -> Plan:
    plan = parse_plan(read_text(path))
    if isinstance(plan, Refusal):
        raise BadConfig(f"{path} is no plan", plan.reason)
    return plan


def begin_demo(which: str, workspace: Path | None, options: Options) -> Prepare:
    """A new chat whose members read their answers from a script."""

    async def prepare(session: Session) -> str:
        team = with_options(demo_team(load_demo(which)), options)
        if not (options.consent.step or options.consent.approve in ("ask", "never")):
            team = replace(team, approve="auto")
        chat = await start_demo(session, which, team, absolute(workspace))
        if not options.output.quiet:
            notify(f"septet: {DEMO}")
        return chat

    return prepare


def resume_chat(
    name: str | None, message: str | None, options: Options, version: str | None = None
) -> Prepare:
    """A chat that exists: from an older version, with the person's answer, and with more room if it had ended."""

    async def prepare(session: Session) -> str:
        heads = await session.store.chats()
        if not heads and not name:
            raise nothing_to_resume(session)
        programs = options.programs
        if programs.network or programs.packages or programs.run_as:
            raise BadUsage(
                "a chat keeps the network, packages and run-as that it began with", "start another"
            )
        chat = await session.find(name) if name else heads[0].chat
        state = await session.state(chat)
        if options.consent.step and not state.team.stepwise:
            raise BadUsage(
                "a chat keeps the step mode that it began with", "start another, or leave out --step"
            )
        await take_chat(session, state, message)
        wanted = None if version is None else version_named(state, version)
        if wanted is not None and wanted != state.work.version:
            await bring_back(session, state, wanted, "to go on from there")
        if message:
            await say(session, state, message)
        if state.ended is not None and (not is_over(state) or message or wanted):
            await session.reopen(chat, more_budget(state, options.bounds))
        return chat

    return prepare


async def take_chat(session: Session, state: State, message: str | None) -> None:
    """Nobody else may go on with it from here. Who does already, is told what the person says."""
    try:
        session.acquire(state.chat)
    except Conflict as conflict:
        if not message or state.ended is not None:
            raise
        await say(session, state, message)
        raise Conflict(conflict.cause, "it has been told what you say; watch it there") from conflict


async def say(session: Session, state: State, message: str) -> None:
    """What the person says: the answer to what the chat waits for, else a remark."""
    for event in read_answer(state, question(state), message):
        await session.append(state.chat, event)


def nothing_to_resume(session: Session) -> BadUsage:
    """No chat is here; one that was conducted from here may be meant."""
    if session.deployment.remote or not (notes := session.remote_chats.all()):
        return BadUsage("there is no chat to resume", "start one with septet run")
    return BadUsage(f"the chat '{notes[0].chat}' is on {notes[0].server}", notes[0].command)


def begin_or_resume(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """The chat of that name, told what is new in the goal; where there is none, it begins."""

    async def prepare(session: Session) -> str:
        if start.name not in {head.chat for head in await session.store.chats()}:
            if goal is None and not at_terminal():
                raise BadUsage(f"there is no project '{start.name}' yet", "say what it shall be")
            return await begin(goal, team, start, options)(session)
        known = (await session.state(start.name)).goal
        news = goal.strip() if goal and goal.strip() != known.strip() else None
        return await resume_chat(start.name, news, options)(session)

    return prepare


def absolute(folder: Path | None) -> Path | None:
    return folder.expanduser().absolute() if folder else None
