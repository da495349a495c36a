"""What the person does on the page. Each act is an event like any other, so every surface sees the same chat."""

from typing import assert_never

from anyio import to_thread
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from septet.agents.person import question, understood
from septet.chat.versions import version_named
from septet.demos.catalogue import load_demo, start_demo, team_of
from septet.domain.events import (
    DecisionRecorded,
    Event,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    StepGranted,
    StopRequested,
    WorkAccepted,
)
from septet.domain.plans import Refusal, parse_plan, plan_digest
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, Conflict
from septet.settings.team_files import REVIEWS, known
from septet.web.app_state import Place, renewed
from septet.web.requests import (
    ACTS,
    NEW_CHATS,
    Accept,
    Approve,
    EditPlan,
    Fork,
    NewChat,
    Pause,
    Restore,
    Resume,
    Say,
    Step,
    Stop,
    body,
    json_answer,
)
from septet.wiring.forks import bring_back, fork
from septet.wiring.session import check_model


def bounded(team: TeamSpec, form: NewChat) -> TeamSpec:
    """The team as the form wants it. Whoever sits before the page can be asked about packages."""
    if form.consult and team.floor not in REVIEWS:
        raise BadUsage(f"the team {team.name} has no reviews to ask you before", "untick that box")
    approve = "auto" if form.yes else team.approve
    packages = "ask" if team.packages == "off" and not form.yes else team.packages
    stepwise, consult = form.step or team.stepwise, form.consult or team.consult
    team = replace(team, stepwise=stepwise, consult=consult, approve=approve, packages=packages)
    return replace(team, budget=form.bounds(team.budget))


def approval(state: State, seen: str) -> PlanApproved:
    """For the plan that the person saw, if it is still the one."""
    if state.plan is None or plan_digest(state.plan) != seen:
        raise Conflict("the plan has changed meanwhile", "look at the newest one")
    return PlanApproved(plan=seen)


class Acting:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.store = place.session.store
        self.conducting = place.conducting

    async def begin(self, request: Request) -> Response:
        """A new chat, conducted here."""
        form = await body(request, NEW_CHATS)
        await self.conducting.sandbox()  # no chat is begun where nothing could run
        chat = await (self.rehearsed(form) if form.demo else self.started(form))
        self.conducting.go_on(await self.place.shelf.state(chat))
        return json_answer({"chat": chat}, 201)

    async def started(self, form: NewChat) -> str:
        session = self.place.session
        chosen = known(form.team or session.team, list(session.teams), "team", "a new chat")
        check_model(session.teams[chosen], form.model)
        team = await session.fitted(bounded(session.teams[chosen], form), form.model or self.place.model)
        return await session.start(form.goal, team, None)

    async def rehearsed(self, form: NewChat) -> str:
        script = await to_thread.run_sync(load_demo, form.demo)
        return await start_demo(self.place.session, form.demo, bounded(team_of(script), form))

    async def act(self, request: Request) -> Response:
        state = await self.place.shelf.state(request.path_params["chat"])
        act = await body(request, ACTS)
        if state.ended is not None:
            await self.conducting.over(state.chat)
        match act:
            case Fork(version=version, seq=seq):
                return json_answer({"chat": await self.forked(state, version, seq)}, 201)
            case Restore(version=version):
                await self.restored(state, version)
            case Pause():
                self.conducting.pause(state.chat)
            case Stop():
                await self.stopped(state)
            case EditPlan(text=text):
                await self.edited(state, text)
            case Say() | Approve() | Accept() | Step() | Resume():
                await self.answered(state, act)
            case _:
                assert_never(act)
        return json_answer({"chat": state.chat})

    async def answered(self, state: State, act: Say | Approve | Accept | Step | Resume) -> None:
        """Acts that let the team go on: after an end with as much room again."""
        waits = question(state) is not None
        await self.recorded(state, act)
        if state.ended is not None:
            await self.place.session.reopen(state.chat, renewed(state))
        if state.ended is not None or waits or isinstance(act, Step | Resume):
            newest = await self.place.shelf.state(state.chat)
            self.conducting.go_on(newest, one_turn=isinstance(act, Step) and not state.team.stepwise)

    async def recorded(self, state: State, act: Say | Approve | Accept | Step | Resume) -> None:
        match act:
            case Say(text=text, to=to):
                for event in self.words(state, text, to):
                    await self.heard(state, event)
            case Approve(plan=plan, seq=seq):
                seen = plan or await self.digest_at(state, seq)
                await self.store.append(state.chat, approval(state, seen), after=None)
            case Accept():
                await self.store.append(state.chat, self.acceptance(state), after=None)
            case Step() | Resume():
                asked = question(state)
                if asked is not None and asked.kind not in ("plan", "packages"):
                    await self.store.append(state.chat, StepGranted(), after=None)

    def words(self, state: State, text: str, to: str) -> tuple[Event, ...]:
        if not text.strip():
            raise BadUsage("nothing was said", "type something")
        if to:
            names = [member.name for member in state.team.members]
            return (PersonSpoke(text=text.strip(), to=known(to, names, "member", state.chat)),)
        asked = question(state) if state.ended is None else None
        return understood(state, asked, text)

    async def heard(self, state: State, event: Event) -> None:
        if isinstance(event, StopRequested):
            await self.stopped(state)
        else:
            await self.store.append(state.chat, event, after=None)

    async def digest_at(self, state: State, seq: int) -> str:
        """Of the plan that stands at `seq` in the log."""
        seen = next(iter(await self.store.read(state.chat, seq - 1)), None) if seq > 0 else None
        if seen is None or not isinstance(seen.event, PlanProposed):
            raise BadUsage(
                f"there is no plan at {seq} in the log of '{state.chat}'", "look at the newest one"
            )
        return plan_digest(seen.event.plan)

    def acceptance(self, state: State) -> WorkAccepted:
        if state.version is None:
            raise BadUsage("there is no version to accept yet", "wait for the coder")
        return WorkAccepted()

    async def edited(self, state: State, text: str) -> None:
        plan = parse_plan(text)
        if isinstance(plan, Refusal):
            raise BadUsage(f"that is no plan: {plan.reason}")
        if state.approved or state.ended is not None:
            raise Conflict("the plan is approved already", "say what to change instead")
        decision = DecisionRecorded(by="person", what="edited the plan", why="on the page")
        await self.store.append(state.chat, decision, after=None)
        await self.store.append(state.chat, PlanProposed(plan=plan, by="person"), after=None)

    async def stopped(self, state: State) -> None:
        if state.ended is not None:
            return
        heads = {head.chat: head for head in await self.store.chats()}
        await self.conducting.stop(state, heads[state.chat].changed)

    async def forked(self, state: State, version: str, seq: int) -> str:
        wanted = version_named(state, version) if version else None
        return await fork(self.place.session, state.chat, wanted, seq)

    async def restored(self, state: State, version: str) -> None:
        if self.conducting.standing(state.chat).conducted:
            raise Conflict("the team is at work on this chat", "pause it first")
        await bring_back(self.place.session, state, version_named(state, version), "on the page")
