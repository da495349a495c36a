"""What the person does on the page. Each act is an event like any other, so every surface sees the same chat."""

from collections.abc import Sequence
from typing import assert_never

from anyio import to_thread
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from septet.chat.versions import version_named
from septet.demos.catalogue import demo_team, load_demo, start_demo
from septet.domain.events import (
    DecisionRecorded,
    Event,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    StepGranted,
    StopRequested,
    WorkAccepted,
)
from septet.domain.plans import Refusal, parse_plan, plan_digest
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, Conflict
from septet.settings.team_files import check_word
from septet.team.questions import question, read_answer
from septet.ways.table import as_much_again, way_of
from septet.web.app_state import AppState
from septet.web.requests import (
    ACTS,
    NEW_CHATS,
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
    decode_body,
    json_response,
)
from septet.wiring.forks import bring_back, fork_chat
from septet.wiring.session import check_model


def team_of_form(team: TeamSpec, form: NewChat) -> TeamSpec:
    """The team as the form wants it. Whoever sits before the page can be asked about packages."""
    if form.consult and not way_of(team).has_reviews:
        raise BadUsage(f"the team {team.name} has no reviews to ask you before", "untick that box")
    approve = "auto" if form.yes else team.approve
    packages = "ask" if team.packages == "off" and not form.yes else team.packages
    stepwise, consult = form.step or team.stepwise, form.consult or team.consult
    team = replace(team, stepwise=stepwise, consult=consult, approve=approve, packages=packages)
    return replace(team, budget=form.with_limits(team.budget))


def approval(state: State, seen: str) -> PlanApproved:
    """For the plan that the person saw, if it is still the one."""
    if state.plan.current is None or plan_digest(state.plan.current) != seen:
        raise Conflict("the plan has changed meanwhile", "look at the newest one")
    return PlanApproved(plan=seen)


def digest_at(log: Sequence[Recorded], seq: int) -> str:
    """Of the plan that stands at `seq`, and nowhere else: sequences have gaps."""
    seen = next((one.event for one in log if one.seq == seq), None)
    if not isinstance(seen, PlanProposed):
        raise BadUsage(f"there is no plan at {seq} in the log", "look at the newest one")
    return plan_digest(seen.plan)


class Actions:
    """Each act of the person as events in the log, and the team let go on where it waited for them."""

    def __init__(self, app: AppState) -> None:
        self.app = app
        self.store = app.session.store
        self.runner = app.runner

    async def create_chat(self, request: Request) -> Response:
        """A new chat, conducted here."""
        form = await decode_body(request, NEW_CHATS)
        await self.runner.sandbox()  # no chat is begun where nothing could run
        chat = await (self.start_demo(form) if form.demo else self.start_chat(form))
        self.runner.start(await self.app.chats.state(chat))
        return json_response({"chat": chat}, 201)

    async def start_chat(self, form: NewChat) -> str:
        session = self.app.session
        chosen = check_word(form.team or session.default_team, list(session.teams), "team", "a new chat")
        check_model(session.teams[chosen], form.model)
        team = await session.with_models(
            team_of_form(session.teams[chosen], form), form.model or self.app.model
        )
        return await session.start(form.goal, team, None)

    async def start_demo(self, form: NewChat) -> str:
        script = await to_thread.run_sync(load_demo, form.demo)
        return await start_demo(self.app.session, form.demo, team_of_form(demo_team(script), form))

    async def act(self, request: Request) -> Response:
        state = await self.app.chats.state(request.path_params["chat"])
        act = await decode_body(request, ACTS)
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
                await self.stop(state)
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
        """Acts that let the team go on: after an end with as much room again."""
        waits = question(state) is not None
        await self.record(state, act)
        if state.ended is not None:
            await self.app.session.reopen(state.chat, as_much_again(state, state.team.budget))
        if state.ended is not None or waits or isinstance(act, Step | Resume):
            newest = await self.app.chats.state(state.chat)
            self.runner.start(newest, one_turn=isinstance(act, Step) and not state.team.stepwise)

    async def record(self, state: State, act: Say | Approve | Accept | Step | Resume) -> None:
        match act:
            case Say(text=text, to=to):
                for event in self.interpret(state, text, to):
                    await self.append(state, event)
            case Approve(plan=plan, seq=seq):
                seen = plan or digest_at(await self.store.read(state.chat, max(seq - 1, 0)), seq)
                await self.store.append(state.chat, approval(state, seen), after=None)
            case Accept():
                await self.store.append(state.chat, self.acceptance(state), after=None)
            case Step() | Resume():
                asked = question(state)
                if asked is not None and asked.kind not in ("plan", "packages"):
                    await self.store.append(state.chat, StepGranted(), after=None)

    def interpret(self, state: State, text: str, to: str) -> tuple[Event, ...]:
        if not text.strip():
            raise BadUsage("the message is empty", "type something")
        if to:
            names = [member.name for member in state.team.members]
            return (PersonSpoke(text=text.strip(), to=check_word(to, names, "member", state.chat)),)
        asked = question(state) if state.ended is None else None
        return read_answer(state, asked, text)

    async def append(self, state: State, event: Event) -> None:
        if isinstance(event, StopRequested):
            await self.stop(state)
        else:
            await self.store.append(state.chat, event, after=None)

    def acceptance(self, state: State) -> WorkAccepted:
        if state.work.version is None:
            raise BadUsage("there is no version to accept yet", "wait for the coder")
        return WorkAccepted()

    async def edit_plan(self, state: State, text: str) -> None:
        plan = parse_plan(text)
        if isinstance(plan, Refusal):
            raise BadUsage(f"this is not a plan: {plan.reason}")
        if state.plan.approved or state.ended is not None:
            raise Conflict("the plan is approved already", "say what to change instead")
        decision = DecisionRecorded(by="person", what="edited the plan", why="on the page")
        await self.store.append(state.chat, decision, after=None)
        await self.store.append(state.chat, PlanProposed(plan=plan, by="person"), after=None)

    async def stop(self, state: State) -> None:
        if state.ended is not None:
            return
        heads = {head.chat: head for head in await self.store.chats()}
        await self.runner.stop(state, heads[state.chat].changed)

    async def fork_chat(self, state: State, version: str, seq: int) -> str:
        wanted = version_named(state, version) if version else None
        return await fork_chat(self.app.session, state.chat, wanted, seq)

    async def restore_version(self, state: State, version: str) -> None:
        if self.runner.status(state.chat).conducted:
            raise Conflict("the team is at work on this chat", "pause it first")
        await bring_back(self.app.session, state, version_named(state, version), "on the page")
