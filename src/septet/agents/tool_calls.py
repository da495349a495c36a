"""A call of a tool, from the intent to the answer: used once, told within bounds, its changes sound and kept."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from septet.agents.protection import check_overwrite
from septet.agents.runner import RunContext
from septet.agents.tool_context import CallContext, call_context
from septet.common.text import cut_middle
from septet.domain.events import ToolAnswered, ToolCalled
from septet.domain.files import FileRef
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.ports import Blobs, Record
from septet.tools.registry import Outcome, Toolbox, ToolResult
from septet.workspace.changes import Change, file_changes, prepare_change

LONGEST_ANSWER = 8_000
"""Bytes of an answer that a model is told, unless it is a whole file; the whole of a longer one is a blob."""


async def answer_call(
    state: State,
    record: Record,
    call: ToolCalled,
    run_context: RunContext,
    tools: Toolbox,
    *,
    interrupted: bool,
) -> State:
    """Use the tool and record what came of it."""
    context = await call_context(state, record, run_context, call)
    said = await use_tool(call, tools, context, interrupted)
    return await record(await tool_answer(state, said, context, run_context))


async def use_tool(call: ToolCalled, tools: Toolbox, context: CallContext, interrupted: bool) -> Outcome:
    """What the tool says. One that is not repeatable is not used again, whatever became of it."""
    if unknown := unknown_tool(call.name, tools):
        return unknown
    if interrupted and not tools[call.name].repeatable:
        return Refusal(reason=f"{call.name} was interrupted; whether it took effect is not known")
    return await tools[call.name].use(context, call.arguments)


def unknown_tool(name: str, names: Collection[str]) -> Refusal | None:
    reason = f"there is no tool '{name}'; the tools are {', '.join(names)}"
    return Refusal(reason=reason) if name not in names else None


async def tool_answer(
    state: State, said: Outcome, context: CallContext, run_context: RunContext
) -> ToolAnswered:
    """What the tool says and wishes, ready to be recorded. Nothing is on disk yet.

    Files become what a `ToolResult` wished, byte by byte. Who says only a text has them formatted, and is told the
    difference.
    """
    call, texts = context.call.id, context.texts
    own = None if isinstance(said, ToolResult) else texts.known.keys() - state.work.person_files
    edited = (
        context.wished.keys() & texts.read.keys()
    )  # what is read below, for the difference, the tool has not seen
    change = said if isinstance(said, Refusal) else await possible_change(context, own)
    if isinstance(change, Refusal) or isinstance(said, Refusal):
        reason = said if isinstance(said, Refusal) else change
        assert isinstance(reason, Refusal)
        return ToolAnswered(id=call, text=reason.reason, failed=True)
    replaced = change.texts.keys() - texts.known.keys() - edited
    if (refused := await check_overwrite(state, replaced, run_context)) is not None:
        return ToolAnswered(id=call, text=refused.reason, failed=True, shown=refused.shown_files)
    changes = await file_changes(change.texts, texts, run_context.blobs)
    answer = replace(words_of(said, change), id=call, changes=changes)
    whole = () if isinstance(said, ToolResult) else told_whole(context, answer.text)
    shown = {*edited, *whole, *(said.shown if isinstance(said, ToolResult) else ())}
    told = answer if whole else await bounded(answer, run_context.blobs)
    return replace(told, shown=await file_refs(context, shown, run_context.blobs))


async def possible_change(context: CallContext, own: Collection[str] | None) -> Change | Refusal:
    """What the call wishes, if it may be; without a base a version takes away only what an earlier one brought."""
    texts = context.texts
    kept = [path for path, text in context.wished.items() if text is None and path not in texts.known]
    if kept and not context.has_base:
        return Refusal(reason=f"{', '.join(kept)}: a file of the person's, which only the person deletes")
    return await prepare_change(texts, context.wished, own)


def words_of(said: str | ToolResult, change: Change) -> ToolAnswered:
    if isinstance(said, ToolResult):
        return ToolAnswered(id="", text=said.text, summary=said.summary)
    return ToolAnswered(id="", text="\n".join(filter(None, [said, change.diff])))


async def bounded(answer: ToolAnswered, blobs: Blobs) -> ToolAnswered:
    """The answer with the middle of a long text left out, and the address of the whole."""
    content = answer.text.encode(errors="replace")
    if len(content) <= LONGEST_ANSWER:
        return answer
    room = LONGEST_ANSWER * len(answer.text) // len(content) - 80
    return replace(answer, text=cut_middle(answer.text, room), whole=await blobs.put(content))


def told_whole(context: CallContext, text: str) -> set[str]:
    """The person's files whose whole text stands in an answer."""
    return {path for path in context.texts.read if context.texts[path] in text}


async def file_refs(context: CallContext, paths: Iterable[str], blobs: Blobs) -> tuple[FileRef, ...]:
    """The person's files that the call changed or showed, as they were."""
    read = {path: context.texts.read[path] for path in sorted(paths) if path in context.texts.read}
    return tuple(
        [
            FileRef(path=path, sha256=await blobs.put(content), size=len(content))
            for path, content in read.items()
        ]
    )
