"""A model that answers from a script, by role and step: drives demos, docs and tests.

It keeps no counters: each request carries its step, so a resumed chat continues at the right one.
"""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from septet.common.documents import read_document
from septet.common.values import Value
from septet.domain.messages import Answer, Delta, Request, ToolCall
from septet.errors import BadConfig
from septet.models.providers.provider import Connections, ModelEndpoint, Provider, free

PIECES = re.compile(r"\S+\s*|\s+")


class ScriptedTurn(Value, forbid_unknown_fields=True):
    """The answer of a role at its n-th step; `expect` must occur in the prompt; `files` are rendered as code blocks.

    `take` maps names to regexes with one group, matched against the prompt; {{name}} is replaced by the match.
    """

    role: str
    say: str = ""
    step: int | None = None
    expect: str = ""
    files: Mapping[str, str] = {}
    calls: tuple["ScriptedCall", ...] = ()
    take: Mapping[str, str] = {}


class ScriptedCall(Value, forbid_unknown_fields=True):
    """A tool call; `arguments` may be text, to produce invalid JSON."""

    name: str
    arguments: Mapping[str, object] | str = {}


class Script(Value, forbid_unknown_fields=True):
    """The answers of a team's members; a demo also has a description, a goal, a team and `files` to start with."""

    turns: tuple[ScriptedTurn, ...]
    about: str = ""
    goal: str = ""
    team: str = "iterate"
    files: Mapping[str, str] = {}


class ScriptedModel:
    def __init__(self, script: Script, name: str) -> None:
        self.name = name
        self.turns: dict[tuple[str, int], ScriptedTurn] = {}
        for turn in script.turns:
            steps = [step for role, step in self.turns if role == turn.role]
            step = turn.step or max(steps, default=0) + 1
            if (turn.role, step) in self.turns:
                raise BadConfig(
                    f"the script {name} has step {step} of the {turn.role} twice",
                    "give each step its own number",
                )
            self.turns[turn.role, step] = turn

    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        turn = self.turn(request)
        captures = self.captures(turn, request)
        text = fill_in(turn_text(turn), captures)
        for piece in PIECES.findall(text):
            yield Delta(text=piece)
        calls = tuple(
            ToolCall(
                id=f"{request.role}-{request.step}-{number}",
                name=call.name,
                arguments=fill_in(arguments_text(call), captures),
            )
            for number, call in enumerate(turn.calls, start=1)
        )
        yield Answer(text=text, model=f"scripted:{self.name}", calls=calls, cost=0.0)

    def turn(self, request: Request) -> ScriptedTurn:
        turn = self.turns.get((request.role, request.step))
        if turn is None:
            count = sum(role == request.role for role, _ in self.turns)
            cause = (
                f"the script {self.name} has no step {request.step} of the {request.role} (it has {count})"
            )
            raise BadConfig(cause, "add the step, or lower --rounds")
        if turn.expect not in request_text(request):
            raise self.mismatch(request, turn.expect)
        return turn

    def captures(self, turn: ScriptedTurn, request: Request) -> Mapping[str, str]:
        matches = {name: re.search(pattern, request_text(request)) for name, pattern in turn.take.items()}
        for name, match in matches.items():
            if match is None:
                raise self.mismatch(request, turn.take[name])
        return {name: match[1] for name, match in matches.items() if match}

    def mismatch(self, request: Request, expected: str) -> BadConfig:
        cause = f"the script {self.name} and the run disagree at step {request.step} of the {request.role}"
        return BadConfig(cause, f"'{expected}' was expected in the prompt")


def request_text(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def fill_in(text: str, captures: Mapping[str, str]) -> str:
    for name, value in captures.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def turn_text(turn: ScriptedTurn) -> str:
    blocks = [f"```python {path}\n{code.rstrip()}\n```" for path, code in turn.files.items()]
    return "\n\n".join(filter(None, [turn.say.strip(), *blocks]))


def arguments_text(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def load_script(path: Path) -> Script:
    script = read_document(path, Script)
    if not script.turns:
        raise BadConfig(f"the script {path} has no turns", "add at least one")
    return script


DEMO = "demo/"


def open_script(endpoint: ModelEndpoint, connections: Connections) -> ScriptedModel:
    rest = endpoint.model
    path = connections.demos / f"{rest.removeprefix(DEMO)}.yaml" if rest.startswith(DEMO) else Path(rest)
    return ScriptedModel(load_script(path), path.name.removesuffix(".yaml"))


def absolute_script(rest: str) -> str:
    return rest if rest.startswith(DEMO) else str(Path(rest).expanduser().absolute())


PROVIDER = Provider(
    name_pattern="scripted:FILE",
    about="answers from a script",
    open=open_script,
    billing=free,
    absolute=absolute_script,
    is_offline=True,
)
