"""The autocoder's acting step: one answer, one action, its arguments checked, its result recorded and shown."""

from collections.abc import AsyncGenerator, Iterator, Mapping

from septet.agents.asking import ask
from septet.agents.choices import Choice, choose, common_parameters, unfit
from septet.agents.protection import unseen
from septet.agents.reasoning import faults_of
from septet.agents.runner import Bench
from septet.agents.speaking import sources
from septet.domain.events import (
    DecisionRecorded,
    Event,
    ModelAnswered,
    ReplyRefused,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.files import FileChange, tree_of
from septet.domain.plans import Refusal
from septet.domain.reduce import reduce_tools, reduce_work
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Model
from septet.team.act_prompts import act_prompt
from septet.team.context import ActionOffer, Context, context_of
from septet.tools.actions import Action
from septet.tools.changes import Prepared, applied, prepared, recorded, wishes

Actions = Mapping[str, Action]


def acting(member: RoleSpec, model: Model, bench: Bench, actions: Actions) -> Agent:
    """The coder of the loop. What was said and done before a crash counts; the workspace is shown again."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if state.turn is None:
            return
        if state.turn.settled:
            await bench.show(state)
            return
        context = await context_now(state, bench, actions)
        said = state.turn.answers[-1] if state.turn.answers else None
        if said is None:
            tools = tuple(action.offer(common_parameters(state)) for action in actions.values())
            said = await ask(member, model, bench.bus, state, act_prompt(member, state, context), tools)
            yield said
        if not said.answer.calls:
            reason = f"no action was called; call one of {', '.join(actions)}"
            yield ReplyRefused(role=member.name, reason=reason)
            return
        async for event in carried_out(state, said, context, bench, actions):
            yield event

    return turn


async def carried_out(
    state: State, said: ModelAnswered, context: Context, bench: Bench, actions: Actions
) -> AsyncGenerator[Event, None]:
    """The first call of the answer, from the intent to the new version on disk."""
    assert state.turn is not None
    interrupted = bool(state.turn.calls)
    called = state.turn.calls[0] if interrupted else intent(state.turn.number, said)
    if not interrupted:
        yield called
    choice = choose(called, actions, state)
    result = state.results.get(called.id)
    if result is None:
        result = await answered(state, called, choice, context, bench, actions)
        state = reduce_tools(state, result)
        yield result
    for event in consequences(state, said.role, result, choice):
        yield event
        if isinstance(event, VersionWritten):
            await bench.show(reduce_work(state, event))


def intent(turn: int, said: ModelAnswered) -> ToolCalled:
    call = said.answer.calls[0]
    return ToolCalled(id=f"{turn}.1", by=said.role, name=call.name, arguments=call.arguments, call=call.id)


async def answered(
    state: State, call: ToolCalled, choice: Choice | Refusal, context: Context, bench: Bench, actions: Actions
) -> ToolAnswered:
    """What comes of the call, ready to be recorded. Nothing is on disk yet."""
    interrupted = state.turn is not None and bool(state.turn.calls)
    if isinstance(choice, Choice) and interrupted and not actions[choice.action].repeatable:
        choice = Refusal(reason=f"{choice.action} was interrupted; whether it took effect is not known")
    change = choice if isinstance(choice, Refusal) else await attempt(state, choice, context, actions)
    if isinstance(change, Refusal):
        return ToolAnswered(id=call.id, text=change.reason, failed=True)
    known = {file.rel_path for file in context.project_code}
    if (refused := await unseen(state, change.texts.keys() - known, bench)) is not None:
        return ToolAnswered(id=call.id, text=refused.reason, failed=True, shown=refused.shown)
    changes = await recorded(change.texts, known, bench.blobs)
    return ToolAnswered(id=call.id, text=change.diff, changes=changes)


async def attempt(state: State, choice: Choice, context: Context, actions: Actions) -> Prepared | Refusal:
    after = await actions[choice.action].apply(context, choice.arguments)
    if isinstance(after, Refusal):
        return after
    before = {file.rel_path: file.content for file in context.project_code}
    change = await prepared(before, wishes(context, after), own=before.keys() - state.borrowed)
    if isinstance(change, Refusal):
        return change
    return unfit(change.texts, choice) or change


def consequences(state: State, by: str, result: ToolAnswered, choice: Choice | Refusal) -> Iterator[Event]:
    """What follows from the result, as far as it is not in the log yet."""
    if result.failed or isinstance(choice, Refusal):
        yield ReplyRefused(role=by, reason=result.text)
        return
    decision = choice.decision
    if decision is not None and not (state.turn and state.turn.decided):
        what = f"the {decision.wrong} is wrong, by {decision.item}"
        yield DecisionRecorded(by=by, what=what, why=decision.why)
    yield next_version(state, result.changes, f"{choice.action}: {choice.reasoning}")


def next_version(state: State, changes: tuple[FileChange, ...], note: str) -> VersionWritten:
    files = applied({file.path: file for file in (state.version.files if state.version else ())}, changes)
    return VersionWritten(number=len(state.versions) + 1, files=files, tree=tree_of(files), note=note)


async def context_now(state: State, bench: Bench, actions: Actions) -> Context:
    texts = await sources(state, bench.blobs)
    offers = [ActionOffer(name=one.name, description=one.description) for one in actions.values()]
    return context_of(state, texts, faults_of(texts), offers)
