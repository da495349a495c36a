"""A member with tools: one answer a turn, its calls carried out in order, its last words sent to whoever asked."""

import shlex
from collections.abc import Mapping

from septet.agents.ask import ask_model
from septet.agents.protection import unseen, with_folder_kept
from septet.agents.replies import sources
from septet.agents.runner import Bench, provide
from septet.domain.events import (
    Event,
    ModelAnswered,
    ReplyRefused,
    RunStarted,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.files import FileRef
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult, name_of
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Model, Record
from septet.team.run_modes import mode_of_run
from septet.tools.registry import Usable, toolbox
from septet.ways.assistant.policy import (
    SEND,
    answer,
    assistant_briefing,
    message_in_work,
    message_sent_by,
    recipients,
    waits_for,
)
from septet.ways.autocoder.members import next_version
from septet.ways.prompts import prompt_text
from septet.ways.way import Kit
from septet.workspace.changes import Change, file_changes, prepare_change
from septet.workspace.files import in_thread, path_trouble
from septet.workspace.listing import FolderTexts

Tools = Mapping[str, Usable]


class WorkingHands:
    """A tool's hands: the newest version's files, wishes for the next one, and the sandbox."""

    def __init__(
        self, state: State, record: Record, texts: FolderTexts, bench: Bench, call: ToolCalled
    ) -> None:
        self._state = state
        self._record = record
        self._ran_before = [run.result for run in state.runs if run.id == call.id]
        self._bench = bench
        self.call = call
        self.texts = texts
        self.wished: dict[str, str | None] = {}

    def write(self, path: str, text: str | None) -> None:
        self.wished[path] = text

    def exists(self, path: str) -> bool:
        return path in self.texts.known or (path_trouble(path) is None and bool(self._content(path)))

    def _content(self, path: str) -> bytes:
        return self._bench.workspace.read(path) or b""

    async def execute(self, path: str) -> RunResult:
        if self._ran_before:
            return self._ran_before[0]
        await self._bench.show(self._state)
        command = f"python {shlex.quote(path)}"
        tree = self._state.version.tree if self._state.version else ""
        text = self.texts.known.get(path) or self._content(path).decode(errors="replace")
        mode = mode_of_run(self._state, {path: text})
        started = RunStarted(
            id=self.call.id,
            purpose="script",
            about=path,
            command=command,
            tree=tree,
            mode=name_of(mode),
        )
        await self._provide()
        ran = await self._bench.run(self._state, self.call.by, started, mode)
        self._state = await self._record(ran)
        return ran.result

    async def _provide(self) -> None:
        """Nobody can be asked in the middle of a call: what is missing is installed only where that is agreed."""
        if self._state.team.packages == "auto":
            packages = self._bench.packages
            self._state = await provide(self._state, self._record, packages, self.texts.known)


def assistant_agent(member: RoleSpec, model: Model, bench: Bench, tools: Tools) -> Agent:
    """An agent with a toolbox. What was said, called and answered before a crash counts."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.turn is None or (state.turn.settled and not state.turn.calls):
            return None
        said = state.turn.answers[-1] if state.turn.answers else None
        if said is None:
            said = await ask_model(
                member,
                model,
                bench.bus,
                state,
                assistant_briefing(member, state, await sources(state, bench.blobs), part_of(member)),
                offers(state, member, tools),
            )
            state = await record(said)
        if said.answer.calls:
            await carry_out_calls(state, record, said, bench, tools)
            return None
        return None if answered_already(state) else end_of_turn(state, member.name, said.answer.text)

    return turn


def offers(state: State, member: RoleSpec, tools: Tools) -> tuple[ToolOffer, ...]:
    names = recipients(state.team, member.name)
    send = [send_offer(names)] if names else []
    return (*(tool.offer() for tool in tools.values()), *send)


def send_offer(names: list[str]) -> ToolOffer:
    return ToolOffer(
        name=SEND,
        description="Send a message to another member and get its final answer. It remembers earlier messages.",
        parameters={
            "type": "object",
            "properties": {
                "recipient": {"type": "string", "enum": names},
                "message": {"type": "string", "description": "Everything that the recipient needs to know."},
            },
            "required": ["recipient", "message"],
            "additionalProperties": False,
        },
    )


def answered_already(state: State) -> bool:
    """This turn's words have gone to whoever asked; the next message in the queue is another turn's."""
    assert state.turn is not None
    return bool(state.results.keys() - {call.id for call in state.turn.calls})


def end_of_turn(state: State, name: str, text: str) -> Event:
    asked = message_in_work(state, name)
    if asked is not None and text.strip():
        return ToolAnswered(id=asked.id, text=text.strip())
    given = Refusal(reason="the answer is empty") if asked is not None else answer(state, name, text.strip())
    return ReplyRefused(role=name, reason=given.reason) if isinstance(given, Refusal) else given


async def carry_out_calls(
    state: State, record: Record, said: ModelAnswered, bench: Bench, tools: Tools
) -> None:
    """Every call of the answer: intent, deed, result, version. A message that was sent stays open."""
    assert state.turn is not None
    turn, before = state.turn.number, {call.id: call for call in state.turn.calls}
    for place, wish in enumerate(said.answer.calls, start=1):
        number = f"{turn}.{place}"
        call = before.get(number)
        if call is None:
            call = ToolCalled(id=number, by=said.role, name=wish.name, arguments=wish.arguments, call=wish.id)
            state = await record(call)
        if number not in state.results:
            state = await answer_call(state, record, call, bench, tools, interrupted=number in before)
        if (version := version_due(state, call)) is not None:
            state = await record(version)
            await bench.show(state)
    await bench.show(state)


def version_due(state: State, call: ToolCalled) -> VersionWritten | None:
    """The version that a result asks for, unless it is in the log already or a later call has moved on."""
    result = state.results.get(call.id)
    if result is None or not result.changes or state.turn is None or state.turn.calls[-1].id != call.id:
        return None
    version = next_version(state, result.changes, f"{call.name} by {call.by}")
    return version if state.version is None or version.tree != state.version.tree else None


async def answer_call(
    state: State, record: Record, call: ToolCalled, bench: Bench, tools: Tools, *, interrupted: bool
) -> State:
    """What comes of a call; nothing yet of a message that a recipient will answer."""
    if call.name == SEND:
        trouble = send_trouble(state, call)
        return await record(ToolAnswered(id=call.id, text=trouble.reason, failed=True)) if trouble else state
    known = await sources(state, bench.blobs)
    hidden = await bench.hidden_paths(state)
    texts = await in_thread(lambda: FolderTexts(known, bench.workspace, hidden))
    hands = WorkingHands(state, record, texts, bench, call)
    said = await use(call, tools, hands, interrupted)
    return await record(await tool_answer(state, said, hands, bench))


async def tool_answer(state: State, said: str | Refusal, hands: WorkingHands, bench: Bench) -> ToolAnswered:
    """What the tool says and wishes, ready to be recorded. Nothing is on disk yet."""
    call, texts = hands.call.id, hands.texts
    edited = hands.wished.keys() & texts.read.keys()
    own = texts.known.keys() - state.borrowed
    change = said if isinstance(said, Refusal) else await prepare_change(texts, hands.wished, own)
    if isinstance(said, Refusal) or isinstance(change, Refusal):
        reason = said if isinstance(said, Refusal) else change
        assert isinstance(reason, Refusal)
        return ToolAnswered(id=call, text=reason.reason, failed=True)
    assert isinstance(change, Change)
    replaced = change.texts.keys() - texts.known.keys() - edited
    if (refused := await unseen(state, replaced, bench)) is not None:
        return ToolAnswered(id=call, text=refused.reason, failed=True, shown=refused.shown)
    text = "\n".join(filter(None, [said, change.diff]))
    changes = await file_changes(change.texts, texts, bench.blobs)
    return ToolAnswered(id=call, text=text, changes=changes, shown=await shown_by(hands, text, bench))


async def shown_by(hands: WorkingHands, text: str, bench: Bench) -> tuple[FileRef, ...]:
    """The person's files that the call changed or whose whole text it tells, as they were."""
    files = {
        path: content
        for path, content in hands.texts.read.items()
        if path in hands.wished or hands.texts[path] in text
    }
    return tuple(
        [
            FileRef(path=path, sha256=await bench.blobs.put(content), size=len(content))
            for path, content in files.items()
        ]
    )


async def use(call: ToolCalled, tools: Tools, hands: WorkingHands, interrupted: bool) -> str | Refusal:
    if call.name not in tools:
        return Refusal(reason=f"there is no tool '{call.name}'; the tools are {', '.join([*tools, SEND])}")
    if interrupted and not tools[call.name].repeatable:
        return Refusal(reason=f"{call.name} was interrupted; whether it took effect is not known")
    return await tools[call.name].use(call.arguments, hands)


def send_trouble(state: State, call: ToolCalled) -> Refusal | None:
    """Why a message cannot be sent: nobody of that name, or somebody who waits for the sender."""
    sent = message_sent_by(call)
    names = recipients(state.team, call.by)
    if sent is None:
        return Refusal(reason="SendMessage needs a `recipient` and a `message`, both texts")
    if sent.recipient not in names:
        return Refusal(
            reason=f"there is no '{sent.recipient}' to write to; the recipients are {', '.join(names)}"
        )
    if sent.recipient in waits_for(state, call.by):
        return Refusal(reason=f"{sent.recipient} waits for your answer: answer instead of asking")
    return None


def part_of(member: RoleSpec) -> str:
    """What the member's role is told; other roles are told by their team."""
    return prompt_text("septet.ways.assistant", member.role) if member.role in ("proxy", "coder") else ""


def member(spec: RoleSpec, kit: Kit) -> Agent:
    """The proxy talks and does nothing else; the others have the toolbox, with the tools of MCP servers."""
    from septet.ways.assistant.tools import (
        assistant_tools,  # pydantic is slow to import, and only tools need it
    )

    model = kit.open_model(spec.model)
    if spec.role == "proxy":
        return assistant_agent(spec, model, kit.bench, {})
    own = toolbox(assistant_tools())

    async def turn(state: State, record: Record) -> Event | None:
        tools = {**await kit.server_tools(), **own}
        return await assistant_agent(spec, model, kit.bench, tools)(state, record)

    return with_folder_kept(turn, kit.bench)
