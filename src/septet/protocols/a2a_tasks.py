"""Chats as A2A's tasks: a chat is a context, and what happens in it up to an end is a task, read from its log."""

import mimetypes
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import msgspec
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value as JsonValue
from google.protobuf.timestamp_pb2 import Timestamp

from septet.chat.results import awaited_question, result_of
from septet.common.values import Value
from septet.domain.events import (
    AnswerGiven,
    ChatContinued,
    ChatEnded,
    ChatStarted,
    PersonSpoke,
    PlanApproved,
    Recorded,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.files import FileRef
from septet.domain.state import State
from septet.ports import Blobs
from septet.protocols.conversation import TurnText, outcome_text, question_text
from septet.ways.endings import ending, is_finished

MAX_INLINE_BYTES = 65_536
"""Larger files are given by their address on this server."""
TERMINAL = (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED)
INTERRUPTED = (TaskState.TASK_STATE_INPUT_REQUIRED,)
Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class TaskId(Value):
    """`NAME.2` is the second task of the chat NAME."""

    chat: str
    number: int

    def __str__(self) -> str:
        return f"{self.chat}.{self.number}"


def parse_task_id(text: str) -> TaskId | None:
    chat, _, number = text.rpartition(".")
    is_number = number.isascii() and number.isdigit() and number[0] != "0" and len(number) < 7
    return TaskId(chat=chat, number=int(number)) if chat and is_number else None


def task_count(log: Sequence[Recorded]) -> int:
    """How many tasks a chat has had: what the person wants after an end begins another."""
    count, over = 0, True
    for recorded in log:
        if over and isinstance(recorded.event, ChatStarted | PersonSpoke | ChatContinued):
            count, over = count + 1, False
        over = over or isinstance(recorded.event, ChatEnded)
    return count


def part_of_log(log: Sequence[Recorded], number: int) -> tuple[Sequence[Recorded], Sequence[Recorded]]:
    """What was before the task, and the events of the task."""
    count, start, over = 0, len(log), True
    for at, recorded in enumerate(log):
        if over and isinstance(recorded.event, ChatStarted | PersonSpoke | ChatContinued):
            count, over = count + 1, False
            if count == number:
                start = at
            elif count > number:
                return log[:start], log[start:at]
        over = over or isinstance(recorded.event, ChatEnded)
    return log[:start], log[start:]


def task_state(state: State) -> TaskState:
    if (ended := ending(state)) is not None:
        if is_finished(state):
            return TaskState.TASK_STATE_COMPLETED
        return TaskState.TASK_STATE_CANCELED if ended.reason == "stopped" else TaskState.TASK_STATE_FAILED
    waits = awaited_question(state) is not None or state.halted is not None
    return TaskState.TASK_STATE_INPUT_REQUIRED if waits else TaskState.TASK_STATE_WORKING


def status_text(state: State) -> str:
    """What the person is asked or told when the task stands still; empty while the team works."""
    if (asked := awaited_question(state)) is not None:
        return question_text(asked)
    if state.ended is not None:
        return outcome_text(state)
    return f"{state.halted.text}. Say anything to go on." if state.halted else ""


class TaskBuilder:
    """Folds the events of one task into A2A's messages, status and artefacts."""

    def __init__(self, identity: TaskId, before: Sequence[Recorded], blobs: Blobs, base: str) -> None:
        self.identity = identity
        self.text = TurnText(State(chat=identity.chat))
        self.history: list[Message] = []
        self.blobs = blobs
        self.base = base
        """The address of this server, for files that are too large to be sent along."""
        self.at = 0.0
        for recorded in before:
            self.text.add(recorded)

    @property
    def state(self) -> State:
        return self.text.state

    def add(self, recorded: Recorded) -> Message | None:
        """Fold one event; the message of the person or the team that it is, if it is one."""
        asked = awaited_question(self.state)
        line = self.text.add(recorded)
        self.at = recorded.at
        said = persons_words(recorded)
        now = awaited_question(self.state)
        if said:
            message = self._message(said, recorded, Role.ROLE_USER)
        elif now is not None and now != asked:
            message = self._message(f"{line}{question_text(now)}", recorded)
        else:
            message = self._message(line.strip(), recorded) if line.strip() else None
        if message is not None:
            self.history.append(message)
        return message

    def status(self, message: Message | None = None) -> TaskStatus:
        text = status_text(self.state)
        if message is None and text:
            message = self._words(text, f"{self.identity}.{self.state.seq}.status")
        moment = Timestamp()
        moment.FromDatetime(datetime.fromtimestamp(self.at, UTC).replace(tzinfo=None))
        return TaskStatus(state=task_state(self.state), message=message, timestamp=moment)

    async def task(self) -> Task:
        return Task(
            id=str(self.identity),
            context_id=self.identity.chat,
            status=self.status(),
            history=self.history,
            artifacts=[one async for one in self.artifacts()],
            metadata={
                "team": self.state.team.name,
                "seen": self.state.seq,
                "workspace": self.state.workspace,
            },
        )

    async def updates(self, recorded: Recorded) -> AsyncIterator[Update]:
        """Fold one event, and tell what it changes."""
        message = self.add(recorded)
        event = recorded.event
        if isinstance(event, VersionWritten):
            yield self._artifact(await self._program(event.files))
        if isinstance(event, AnswerGiven):
            yield self._artifact(answer_artifact(event.text))
        if isinstance(event, ChatEnded):
            yield self._artifact(self._report())
        is_persons = message is not None and message.role == Role.ROLE_USER
        if message is not None or task_state(self.state) != TaskState.TASK_STATE_WORKING:
            stands = bool(status_text(self.state))
            yield TaskStatusUpdateEvent(
                task_id=str(self.identity),
                context_id=self.identity.chat,
                status=self.status(None if stands or is_persons else message),
                metadata={"seen": self.state.seq},
            )

    async def artifacts(self) -> AsyncIterator[Artifact]:
        """What the task has made so far: the answer, the program, and how it ended."""
        if self.state.talk.answer is not None:
            yield answer_artifact(self.state.talk.answer.text)
        if self.state.work.version is not None:
            yield await self._program(self.state.work.files)
        if self.state.ended is not None:
            yield self._report()

    def _report(self) -> Artifact:
        result = result_of(self.state)
        lines = [
            {"item": one.item, "requirement": one.requirement, "met": one.met, "evidence": one.evidence}
            for one in result.evidence
        ]
        found = {"status": result.status, "detail": result.detail, "cost": result.cost, "requirements": lines}
        parts = [
            Part(text=outcome_text(self.state), media_type="text/plain"),
            Part(data=json_value(found), media_type="application/json"),
        ]
        return Artifact(artifact_id="report", name="report", description="How it ended", parts=parts)

    async def _program(self, files: Sequence[FileRef]) -> Artifact:
        parts = [await self._file(file) for file in files if file.sha256]
        number = self.state.work.version.number if self.state.work.version else 0
        none = [] if parts else [Part(text="The version holds no files.", media_type="text/plain")]
        return Artifact(
            artifact_id="program",
            name=f"version {number}",
            description="The files of the newest version that the team has written",
            parts=[*parts, *none],
        )

    async def _file(self, file: FileRef) -> Part:
        kind = mimetypes.guess_type(file.path)[0] or "application/octet-stream"
        if file.size > MAX_INLINE_BYTES:
            name = file.path.rpartition("/")[2]
            address = f"{self.base}/artefacts/{file.sha256}/{name}"
            return Part(url=address, filename=file.path, media_type=kind)
        return Part(raw=await self.blobs.get(file.sha256), filename=file.path, media_type=kind)

    def _artifact(self, artifact: Artifact) -> TaskArtifactUpdateEvent:
        return TaskArtifactUpdateEvent(
            task_id=str(self.identity), context_id=self.identity.chat, artifact=artifact, last_chunk=True
        )

    def _message(self, text: str, recorded: Recorded, role: Role = Role.ROLE_AGENT) -> Message:
        return self._words(text, f"{self.identity}.{recorded.seq}", role)

    def _words(self, text: str, name: str, role: Role = Role.ROLE_AGENT) -> Message:
        parts = [Part(text=text.strip(), media_type="text/markdown")]
        return Message(
            message_id=name, task_id=str(self.identity), context_id=self.identity.chat, role=role, parts=parts
        )


def persons_words(recorded: Recorded) -> str:
    """What the person said, whichever surface it came by; a click is the word that stands for it."""
    match recorded.event:
        case ChatStarted(goal=text) | PersonSpoke(text=text):
            return text
        case PlanApproved(by="person"):
            return "yes"
        case WorkAccepted():
            return "accept"
        case _:
            return ""


def answer_artifact(text: str) -> Artifact:
    """An answer as text, or as data if it is a JSON object."""
    try:
        found = msgspec.json.decode(text, type=dict[str, object])
        part = Part(data=json_value(found), media_type="application/json")
    except (msgspec.MsgspecError, RecursionError):
        part = Part(text=text, media_type="text/markdown")
    return Artifact(
        artifact_id="answer", name="answer", description="The answer to what was asked", parts=[part]
    )


def json_value(content: object) -> JsonValue:
    return ParseDict(msgspec.to_builtins(content), JsonValue())  # pyright: ignore[reportUnknownMemberType]  # no stubs


async def build(identity: TaskId, log: Sequence[Recorded], blobs: Blobs, base: str) -> TaskBuilder:
    before, events = part_of_log(log, identity.number)
    builder = TaskBuilder(identity, before, blobs, base)
    for recorded in events:
        builder.add(recorded)
    return builder
