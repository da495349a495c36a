"""Prepares the chat of a command: starts a new chat or a demo, or resumes an existing chat."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from septet.chat.summaries import Summaries
from septet.chat.versions import version_named
from septet.cli.options import (
    QUICKSTART,
    DataFiles,
    Options,
    check_questions,
    is_given,
    more_budget,
    with_options,
    with_questions,
)
from septet.cli.output import notify
from septet.cli.person import EXIT_WORDS, WELCOME, ask_line, at_terminal
from septet.cli.tables import ChatRow, chat_lines, columns_of, row_of
from septet.cli.watch import Prepare
from septet.common.documents import read_text
from septet.demos.catalogue import demo_team, load_demo, nearest_demo, start_demo
from septet.domain.approvals import approves, is_question
from septet.domain.events import DataDescribed
from septet.domain.plans import Plan, Refusal, parse_plan
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadConfig, BadUsage, Conflict
from septet.ports import ChatHead
from septet.settings.group_chats import without_models
from septet.team.questions import SHORT_ACTION, check_action, question, read_answer
from septet.ways.endings import FINISHED, is_over
from septet.ways.table import thinkers
from septet.wiring.forks import bring_back
from septet.wiring.session import Session, checked_goal, with_model
from septet.workspace.git import repository_of

DEMO = (
    "a demo: the members' answers were written beforehand; the code, tests and pictures are really run here"
)

MOST_OFFERED = 100


class Start(NamedTuple):
    """The workspace of a new chat, its name, and the plan that it starts with."""

    workspace: Path | None = None
    name: str = ""
    plan: Path | None = None


def repository_here(quiet: bool, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the repository that the person is in, unless it is the home folder, or the checkout of `./run`."""
    repository = repository_of(Path.cwd())
    checkout = environment.get(QUICKSTART, "")
    if repository is not None and checkout and repository == Path(checkout).resolve():
        if not quiet:
            notify(
                "septet: this is Septet's own checkout: the program gets a new folder (-C . changes Septet itself)"
            )
        return None
    return None if repository == Path.home().resolve() else repository


def team_for(goal: str, start: Start, files: DataFiles) -> str:
    """Return the team for a goal if the person names none: a question about data or a project gets an answer."""
    folder = start.workspace
    project = folder is not None and folder.is_dir() and any(folder.iterdir())
    asks = project and start.plan is None and is_question(goal)
    return "assistant" if files.data or asks else "iterate"


def begin(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """Start a new chat. A person at the terminal is also asked before every review.

    Contradictory options raise at once; other obstacles before a model is searched for.
    """
    plan = read_plan(start.plan) if start.plan else None
    if options.model.model and (team.config or is_given("model")):
        team = without_models(team)
    check_questions(team, options.consent)

    async def prepare(session: Session) -> str:
        text = goal
        if text is None:
            notify(WELCOME)
            text = await ask_line("> ")
        checked_goal(text)
        await session.check_new_chat(start.name, absolute(start.workspace))
        model = await model_for(team, session, options)
        if model is None:
            return await begin_demo(nearest_demo(text), start.workspace, options)(session)
        asking = with_questions(team, options.consent, at_terminal())
        spec = with_model(with_options(asking, options), model)
        data = await describe_data(options.files)
        chat = await session.start(text, spec, absolute(start.workspace), start.name, data)
        if plan is not None:
            await session.propose(chat, plan)
        return chat

    return prepare


async def describe_data(files: DataFiles) -> list[DataDescribed]:
    """Return the data cards of the files; raises before the chat starts if a file is unusable."""
    if not files.data:
        return []
    from septet.workspace.data_cards import describe, read_dictionary

    meanings = read_dictionary(files.dictionary)
    return [await describe(str(absolute(path)), meanings) for path in files.data]


async def model_for(team: TeamSpec, session: Session, options: Options) -> str | None:
    """Return the model for members without one of their own; search for one only if a member needs it."""
    session.adopt_client_config(team)
    if all(member.model for member in thinkers(team)):
        return options.model.model
    from septet.cli.download import model_to_use

    return await model_to_use(session.models, options.model, options.consent.to_all)


def read_plan(path: Path) -> Plan:
    plan = parse_plan(read_text(path))
    if isinstance(plan, Refusal):
        raise BadConfig(f"{path} is not a plan", plan.reason)
    return plan


def begin_demo(which: str, workspace: Path | None, options: Options) -> Prepare:
    """Start a new chat whose members answer from a script."""

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
    name: str | None, message: str | None, options: Options, version: str | None = None, action: str = ""
) -> Prepare:
    """Resume a chat: from an older version, with the person's answer, and with a raised budget if it had ended.

    Without a name it is the one that the person picks; an empty name is the most recently changed one.
    """

    async def prepare(session: Session) -> str:
        heads = await session.store.chats()
        if not heads and not name:
            raise nothing_to_resume(session)
        programs = options.programs
        if programs.network or programs.packages or programs.run_as:
            raise BadUsage(
                "a chat keeps the network, packages and run-as that it started with", "start another chat"
            )
        chat = await session.find(name) if name else await pick_chat(session, heads, last=name == "")
        state = await session.state(chat)
        if options.consent.step and not state.team.stepwise:
            raise BadUsage(
                "a chat keeps the step mode that it started with", "start another chat, or leave out --step"
            )
        check_action(state, action)
        tell_answered(state, "" if options.output.quiet else message or "")
        await lock_chat(session, state, message)
        wanted = None if version is None else version_named(state, version)
        if wanted is not None and wanted != state.work.version:
            await bring_back(session, state, wanted, "to go on from there")
        if message:
            await send_message(session, state, message)
        if state.ended is not None and (not is_over(state) or message or wanted):
            await session.reopen(chat, more_budget(state, options.bounds))
        return chat

    return prepare


async def pick_chat(session: Session, heads: Sequence[ChatHead], last: bool) -> str:
    """Return the `last` chat, the only unfinished one, or the one that the person picks of several."""
    if last:
        return heads[0].chat
    newest = await Summaries(session.store, session.index).newest(MOST_OFFERED)
    unfinished = [row_of(summary) for summary in newest if summary.reason not in FINISHED]
    if not unfinished:
        raise BadUsage(
            "every chat is finished", "septet resume NAME 'what to change' continues one: septet list"
        )
    if len(unfinished) == 1:
        return unfinished[0].chat
    if not at_terminal():
        names = ", ".join(row.chat for row in unfinished[:5]) + (", …" if len(unfinished) > 5 else "")
        raise BadUsage(f"{len(unfinished)} chats are unfinished ({names})", "name one, or add --last")
    return await ask_which(unfinished)


async def ask_which(rows: Sequence[ChatRow]) -> str:
    """Show the chats and ask for the number of one."""
    for number, line in enumerate(chat_lines(rows, columns_of(sys.stderr) - 5).splitlines(), start=1):
        notify(f"{number:>3}  {line}")
    while True:
        answer = (await ask_line("which one? ([Enter]: 1, q quits) ")).strip()
        if answer.lower() in EXIT_WORDS:
            raise BadUsage("no chat was resumed", "septet list shows them all")
        if not answer or (answer.isdecimal() and 1 <= int(answer) <= len(rows)):
            return rows[int(answer or 1) - 1].chat
        notify(f"septet: please type a number from 1 to {len(rows)}")


async def lock_chat(session: Session, state: State, message: str | None) -> None:
    """Lock the chat for this process. If another process runs it, send the message there and raise Conflict."""
    try:
        session.acquire(state.chat)
    except Conflict as conflict:
        if not message or state.ended is not None:
            raise
        await send_message(session, state, message)
        raise Conflict(conflict.cause, "your message was sent to it; watch it there") from conflict


def tell_answered(state: State, message: str) -> None:
    """Say what the message approves: somebody else may have been answered since it was asked."""
    asked = question(state)
    if asked is not None and message and approves(message):
        subject = asked.text.strip().splitlines()[0] if asked.text.strip() else asked.kind
        more = ", …" if len(asked.text.strip().splitlines()) > 1 else ""
        notify(
            f"septet: '{message}' answers: {asked.kind}, {subject}{more} (--action {asked.action[:SHORT_ACTION]})"
        )


async def send_message(session: Session, state: State, message: str) -> None:
    """Store the person's message: the answer if the chat waits for one, else a remark."""
    for event in read_answer(state, question(state), message):
        await session.append(state.chat, event)


def nothing_to_resume(session: Session) -> BadUsage:
    """Return the error for no local chat; it names a chat on a server that was conducted from here."""
    if session.deployment.remote or not (notes := session.remote_chats.all()):
        return BadUsage("there is no chat to resume", "start one with septet run")
    return BadUsage(f"the chat '{notes[0].chat}' is on {notes[0].server}", notes[0].command)


def begin_or_resume(goal: str | None, team: TeamSpec, start: Start, options: Options) -> Prepare:
    """Resume the chat of that name, with a changed goal as a message; start it if there is none."""

    async def prepare(session: Session) -> str:
        if start.name not in {head.chat for head in await session.store.chats()}:
            if goal is None and not at_terminal():
                raise BadUsage(f"there is no project '{start.name}' yet", "add its goal")
            return await begin(goal, team, start, options)(session)
        known = (await session.state(start.name)).goal
        message = goal.strip() if goal and goal.strip() != known.strip() else None
        return await resume_chat(start.name, message, options)(session)

    return prepare


def absolute(folder: Path | None) -> Path | None:
    return folder.expanduser().absolute() if folder else None
