"""The code assistant's members and their tools: one answer per turn, whose calls run in order."""

import dataclasses
from typing import Annotated

from msgspec import Meta

from septet.agents.ask import ask_model
from septet.agents.protection import with_folder_protection
from septet.agents.reply_files import sources
from septet.agents.run_context import RunContext
from septet.agents.tool_context import next_version
from septet.agents.tool_loop import answer_call, unknown_tool
from septet.common.values import Value
from septet.domain.citations import REFERENCE, References, check_references
from septet.domain.events import (
    Event,
    ModelAnswered,
    ReplyRefused,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Model, Record
from septet.team.briefing import head_and_tail
from septet.tools.editing import editing_tools
from septet.tools.reading import closed_reason, reading_tools
from septet.tools.registry import (
    Tool,
    Toolbox,
    ToolContext,
    allowed_tools,
    known_tools,
    tool_of_class,
    with_others,
)
from septet.tools.running import running_tools
from septet.ways.assistant.policy import (
    SEND,
    answer,
    assistant_briefing,
    has_project,
    message_in_work,
    message_sent_by,
    recipients,
    reference_refusal,
    waits_for,
)
from septet.ways.prompts import prompt_text
from septet.ways.way import MemberContext
from septet.workspace.edits import replace_text
from septet.workspace.files import in_thread
from septet.workspace.listing import LOOKED_INTO, FolderTexts

MOST_NAMES = 100
RUN = (
    "Run a command in the sandbox, in the workspace: a script with arguments, a selection of tests. What it changes is "
    "kept if it ends with 0."
)


class File(Value, forbid_unknown_fields=True):
    """Create, overwrite, edit or read a text file in the workspace. Give `body` for a whole file, or `old` and `new`
    to replace a piece of text that stands in it exactly once: the difference comes back. Give none of them to read it.
    """

    reasoning: Annotated[
        str, Meta(min_length=1, description="Think first: what the file is to do, step by step.")
    ]
    file_name: Annotated[
        str, Meta(description="A path inside the workspace, with its extension, e.g. ctr.py")
    ]
    body: Annotated[str | None, Meta(description="The whole content of the file, nothing left out.")] = None
    old: Annotated[str | None, Meta(description="Text that stands in the file exactly once.")] = None
    new: Annotated[str | None, Meta(description="What shall stand there instead.")] = None

    def use(self, context: ToolContext) -> str | Refusal:
        if self.body is not None and self.old is None:
            context.write(self.file_name, self.body)
            return f"{self.file_name} is written"
        if self.body is not None or (self.old is None and self.new is not None):
            return Refusal(reason="give either `body`, or `old` and `new`")
        before = context.texts.get(self.file_name)
        if before is None:
            return no_file_in_folder(self.file_name, context)
        if self.old is None:
            return before
        after = replace_text(before, self.old, self.new or "")
        if isinstance(after, str):
            context.write(self.file_name, after)
        return after if isinstance(after, Refusal) else f"{self.file_name} is changed"


class ExecutePyFile(Value, forbid_unknown_fields=True):
    """Run a Python file of the workspace. Its exit status, standard output and standard error come back."""

    file_name: Annotated[str, Meta(description="The path of the .py file to be run.")]

    async def use(self, context: ToolContext) -> str | Refusal:
        if not self.file_name.endswith(".py") or not context.exists(self.file_name):
            return no_file_in_folder(self.file_name, context)
        result = await context.execute(self.file_name)
        made = [change.path for change in result.changes if change.kind != "deleted"]
        parts = [f"{self.file_name}: {result.ending}" + (f", made {', '.join(made)}" if made else "")]
        parts += [f"stdout:\n{head_and_tail(result.stdout)}"] if result.stdout else []
        parts += [f"stderr:\n{head_and_tail(result.stderr)}"] if result.stderr else []
        text = "\n".join(parts)
        return text if result.succeeded else Refusal(reason=text)


def no_file_in_folder(path: str, context: ToolContext) -> Refusal:
    if context.exists(path):
        return Refusal(reason=closed_reason(context, path))
    names = list(context.texts)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return Refusal(
        reason=f"there is no '{path}'; the files are {', '.join(names[:MOST_NAMES]) or 'none'}{more}"
    )


def assistant_tools() -> list[Tool]:
    """The way's own tools, and those that read, edit and run files; there is no plan to check."""
    common = {one.name: one for one in (*reading_tools(), *editing_tools(), *running_tools())}
    runs = dataclasses.replace(common["run"], description=RUN, keeps_output=True)
    executes = dataclasses.replace(tool_of_class(ExecutePyFile), keeps_output=True)
    wanted = ("list_files", "search", "outline", "read", "edit", "delete")
    return [tool_of_class(File), executes, *(common[name] for name in wanted), runs]


def assistant_agent(member: RoleSpec, model: Model, run_context: RunContext, tools: Toolbox) -> Agent:
    """An agent with a toolbox. It continues after a crash where the log ends."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or (state.floor.turn.closed and not state.floor.turn.calls):
            return None
        said = state.floor.turn.answers[-1] if state.floor.turn.answers else None
        if said is None:
            said = await ask_model(
                member,
                model,
                run_context.bus,
                state,
                assistant_briefing(
                    member, state, await sources(state, run_context.blobs), part_of(member, state)
                ),
                offers(state, member, tools),
            )
            state = await record(said)
        if said.answer.calls:
            await run_assistant_calls(state, record, said, run_context, tools)
            return None
        if answered_already(state):
            return None
        references = await references_in(said.answer.text, state, run_context)
        return end_of_turn(state, member.name, said.answer.text, references)

    return turn


async def references_in(text: str, state: State, run_context: RunContext) -> References:
    """The lines of the person's project that a reply cites."""
    if not has_project(state) or not REFERENCE.search(text):
        return References()
    known, hidden = await sources(state, run_context.blobs), await run_context.hidden_paths(state)

    def check() -> References:
        texts = FolderTexts(known, run_context.workspace, hidden, LOOKED_INTO, run_context.harmless)
        return check_references(text, texts, state.workspace)

    return await in_thread(check)


def offers(state: State, member: RoleSpec, tools: Toolbox) -> tuple[ToolOffer, ...]:
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
    """Whether this turn's reply was delivered; the next message in the queue belongs to another turn."""
    assert state.floor.turn is not None
    return bool(state.talk.tool_results.keys() - {call.id for call in state.floor.turn.calls})


def end_of_turn(state: State, name: str, text: str, references: References) -> Event:
    asked = message_in_work(state, name)
    if asked is None:
        given = answer(state, name, text.strip(), references)
    elif not text.strip():
        given = Refusal(reason="the answer is empty")
    else:
        told = ToolAnswered(id=asked.id, text=text.strip())
        given = reference_refusal(state, name, references) or told
    return ReplyRefused(role=name, reason=given.reason) if isinstance(given, Refusal) else given


async def run_assistant_calls(
    state: State, record: Record, said: ModelAnswered, run_context: RunContext, tools: Toolbox
) -> None:
    """Run every call of the answer and record call, result and version. A message that was sent stays open."""
    assert state.floor.turn is not None
    turn, before = state.floor.turn.number, {call.id: call for call in state.floor.turn.calls}
    for place, wish in enumerate(said.answer.calls, start=1):
        number = f"{turn}.{place}"
        call = before.get(number)
        if call is None:
            call = ToolCalled(id=number, by=said.role, name=wish.name, arguments=wish.arguments, call=wish.id)
            state = await record(call)
        if number not in state.talk.tool_results:
            state = await answer_or_send(
                state, record, call, run_context, tools, interrupted=number in before
            )
        if (version := version_due(state, call)) is not None:
            state = await record(version)
            await run_context.write_newest(state)
    await run_context.write_newest(state)


def version_due(state: State, call: ToolCalled) -> VersionWritten | None:
    """The version that a result needs, unless it is in the log already or a later call replaced it."""
    result = state.talk.tool_results.get(call.id)
    if (
        result is None
        or not result.changes
        or state.floor.turn is None
        or state.floor.turn.calls[-1].id != call.id
    ):
        return None
    version = next_version(state, result.changes, f"{call.name} by {call.by}")
    return version if state.work.version is None or version.tree != state.work.version.tree else None


async def answer_or_send(
    state: State,
    record: Record,
    call: ToolCalled,
    run_context: RunContext,
    tools: Toolbox,
    *,
    interrupted: bool,
) -> State:
    """The answer of a call; None for a message that its recipient will answer."""
    sends = call.name == SEND
    trouble = send_trouble(state, call) if sends else unknown_tool(call.name, [*tools, SEND])
    if sends or trouble:
        return await record(ToolAnswered(id=call.id, text=trouble.reason, failed=True)) if trouble else state
    return await answer_call(state, record, call, run_context, tools, interrupted=interrupted)


def send_trouble(state: State, call: ToolCalled) -> Refusal | None:
    """Why a message cannot be sent: an unknown recipient, or one that waits for the sender."""
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


def part_of(member: RoleSpec, state: State) -> str:
    """The prompt of the member's role, with the rule for numbers if there are data. Teams may add other roles."""
    names = [member.role] if member.role in ("proxy", "coder") else []
    names += ["data"] if state.work.data else []
    return "".join(prompt_text("septet.ways.assistant", name) for name in names)


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    """The agent of a member: the proxy only talks; the others have the toolbox and the tools of MCP servers."""
    model = context.open_model(spec.model)
    if spec.role == "proxy":
        return assistant_agent(spec, model, context.run_context, {})
    own = known_tools(assistant_tools())

    async def turn(state: State, record: Record) -> Event | None:
        tools = allowed_tools(with_others(own, await context.server_tools()), spec.role)
        return await assistant_agent(spec, model, context.run_context, tools)(state, record)

    return with_folder_protection(turn, context.run_context)
