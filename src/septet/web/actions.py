"""The person's actions on the page, stored as events, so that every surface sees the same chat."""

from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from anyio import to_thread
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from septet.chat.results import open_question
from septet.chat.versions import version_named
from septet.demos.catalogue import demo_team, load_demo, start_demo
from septet.domain.approvals import approves
from septet.domain.events import (
    DecisionRecorded,
    Event,
    PackagesDecided,
    PlanApproved,
    PlanProposed,
    Recorded,
    StepGranted,
    ToolAnswered,
    WorkAccepted,
)
from septet.domain.plans import Refusal, parse_plan, plan_digest
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, Conflict, NeedsPerson
from septet.protocols.http import decode_body, json_response
from septet.team.questions import check_action, question
from septet.ways.table import way_of
from septet.web.app_state import AppState
from septet.web.requests import (
    ACT_DECODER,
    NEW_CHAT_DECODER,
    Accept,
    Approve,
    Deliver,
    EditPlan,
    Fork,
    NewChat,
    Pause,
    Restore,
    Resume,
    Say,
    Step,
    Stop,
)
from septet.wiring.chat_runner import team_for_person
from septet.wiring.forks import bring_back, fork_chat


def team_of_form(team: TeamSpec, form: NewChat) -> TeamSpec:
    """Return the team with the form's settings."""
    if form.consult and not way_of(team).has_reviews:
        raise BadUsage(
            f"the team {team.name} has no reviews, so it cannot ask you before one", "untick that box"
        )
    stepwise, consult = form.step or team.stepwise, form.consult or team.consult
    team = replace(team_for_person(team, form.yes), stepwise=stepwise, consult=consult)
    return replace(team, budget=form.with_limits(team.budget))


def folder_of_form(form: NewChat) -> Path | None:
    """The folder to work in; None for a new one. Raises BadUsage for one that is not there."""
    if not form.folder:
        return None
    folder = Path(form.folder).expanduser()
    if "\0" in form.folder or not folder.is_absolute() or not folder.is_dir():
        raise BadUsage(f"there is no folder '{form.folder[:200]}'", "choose one from the list")
    return folder


def approval(state: State, digest: str) -> PlanApproved:
    """Approve the plan that the person saw. Raises Conflict if it is no longer the current one."""
    if state.plan.current is None or plan_digest(state.plan.current) != digest:
        raise Conflict("the plan has changed in the meantime", "look at the newest plan")
    return PlanApproved(plan=digest)


def acceptance(state: State, tree: str) -> WorkAccepted:
    """Accept the version that the person saw. Raises Conflict if it is no longer the newest one."""
    if state.work.version is None:
        raise BadUsage("there is no version to accept yet", "wait for the coder")
    if state.work.version.tree != tree:
        raise Conflict("there is a newer version in the meantime", "look at the newest version")
    return WorkAccepted(tree=state.work.version.tree)


APPROVALS = (PlanApproved, StepGranted, WorkAccepted, PackagesDecided, ToolAnswered)
"""The events by which the person says yes or no to an action that the team shows."""


def check_named(state: State, events: Sequence[Event], action: str) -> None:
    """Raise NeedsPerson if the answer is to another question than the open one, or approves what it does not name."""
    check_action(state, action)
    approves = any(isinstance(event, APPROVALS) for event in events)
    if approves and not action and open_question(state) is not None:
        raise NeedsPerson("the answer does not name what it approves", "send the question's action with it")


def check_said(state: State, text: str, events: Sequence[Event], action: str) -> None:
    """The same for words; those that approve nothing are heard also if the shown question is answered by now."""
    if question(state) is not None or approves(text):
        check_named(state, events, action)


def grants(state: State, act: Step | Resume) -> tuple[Event, ...]:
    """Grant the turn that the person saw. To go on with a chat that asks something grants nothing by itself."""
    asked = question(state)
    about_turn = asked is not None and asked.kind in ("step", "review")
    unnamed = isinstance(act, Resume) and not act.action and open_question(state) is not None
    granted = (StepGranted(action=asked.action),) if asked and about_turn and not unnamed else ()
    check_named(state, granted, act.action)
    return granted


def digest_at(log: Sequence[Recorded], seq: int) -> str:
    """Return the digest of the plan proposed at exactly `seq`: sequence numbers have gaps."""
    event = next((recorded.event for recorded in log if recorded.seq == seq), None)
    if not isinstance(event, PlanProposed):
        raise BadUsage(f"there is no plan at {seq} in the log", "look at the newest plan")
    return plan_digest(event.plan)


class Actions:
    """Stores the person's actions as events, and lets the team continue if it waited for them."""

    def __init__(self, app: AppState) -> None:
        self.app = app
        self.store = app.session.store
        self.runner = app.runner

    async def create_chat(self, request: Request) -> Response:
        """Start a new chat, conducted by this server."""
        form = await decode_body(request, NEW_CHAT_DECODER)
        await self.runner.sandbox()  # raises before a chat is started in which nothing could run
        chat = await (self.start_demo(form) if form.demo else self.start_chat(form))
        self.runner.start(await self.app.chats.state(chat))
        return json_response({"chat": chat}, 201)

    async def start_chat(self, form: NewChat) -> str:
        team = await self.app.service.team(form.team, form.model)
        return await self.app.session.start(form.goal, team_of_form(team, form), folder_of_form(form))

    async def start_demo(self, form: NewChat) -> str:
        script = await to_thread.run_sync(load_demo, form.demo)
        return await start_demo(self.app.session, form.demo, team_of_form(demo_team(script), form))

    async def act(self, request: Request) -> Response:
        """Act on a chat: say something, approve, accept, edit the plan, pause, step, stop, fork, restore, deliver."""
        state = await self.app.chats.state(request.path_params["chat"])
        act = await decode_body(request, ACT_DECODER)
        if state.ended is not None:
            await self.runner.wait_until_finished(state.chat)
        match act:
            case Fork(version=version, seq=seq):
                return json_response({"chat": await self.fork_chat(state, version, seq)}, 201)
            case Restore() | Deliver():
                await self.change_files(state, act)
            case Pause():
                self.runner.pause(state.chat)
            case Stop():
                await self.app.service.stop(state)
            case EditPlan(text=text):
                await self.edit_plan(state, text)
            case Say() | Approve() | Accept() | Step() | Resume():
                await self.go_on(state, act)
            case _:
                assert_never(act)
        return json_response({"chat": state.chat})

    async def change_files(self, state: State, act: Restore | Deliver) -> None:
        if isinstance(act, Deliver):
            await self.app.session.deliver(state.chat, act.files)
        else:
            await self.restore_version(state, act.version)

    async def go_on(self, state: State, act: Say | Approve | Accept | Step | Resume) -> None:
        """Store an action after which the team continues."""
        await self.app.service.record(
            state,
            await self.events_of(state, act),
            resume=isinstance(act, Step | Resume),
            one_turn=isinstance(act, Step) and not state.team.stepwise,
        )

    async def events_of(self, state: State, act: Say | Approve | Accept | Step | Resume) -> tuple[Event, ...]:
        match act:
            case Say(text=text, to=to):
                events = self.app.service.interpret(state, text, to)
                check_said(state, text, events, act.action)
                return events
            case Approve(plan=plan, seq=seq):
                digest = plan or digest_at(await self.store.read(state.chat, max(seq - 1, 0)), seq)
                return (approval(state, digest),)
            case Accept(tree=tree):
                return (acceptance(state, tree),)
            case Step() | Resume():
                return grants(state, act)

    async def edit_plan(self, state: State, text: str) -> None:
        plan = parse_plan(text)
        if isinstance(plan, Refusal):
            raise BadUsage(f"this is not a plan: {plan.reason}")
        if state.plan.approved or state.ended is not None:
            raise Conflict("the plan is already approved", "send a message with the change instead")
        decision = DecisionRecorded(by="person", what="edited the plan", why="on the page")
        await self.store.append(state.chat, decision, after=None)
        await self.store.append(state.chat, PlanProposed(plan=plan, by="person"), after=None)

    async def fork_chat(self, state: State, version: str, seq: int) -> str:
        wanted = version_named(state, version) if version else None
        return await fork_chat(self.app.session, state.chat, wanted, seq)

    async def restore_version(self, state: State, version: str) -> None:
        if self.runner.status(state.chat).conducted:
            raise Conflict("the team is working on this chat", "pause it first")
        await bring_back(self.app.session, state, version_named(state, version), "on the page")
