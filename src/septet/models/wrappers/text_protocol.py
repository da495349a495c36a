"""Tool calls, schemas and images as plain text for servers without them; invalid arguments are asked for again."""

import re
from collections.abc import AsyncGenerator

import msgspec
from msgspec.structs import replace

from septet.common.text import pluralize
from septet.domain.messages import Answer, Delta, Message, Request, ToolCall, ToolOffer
from septet.models.faults import DECODE_ERRORS, FeatureMissing, InvalidAnswer, RequestRejected
from septet.models.wrappers.streams import Item, open_answer
from septet.ports import Model

BROKEN = "The arguments of this call are not a JSON object ({}). Nothing was done. Send the whole call again."
TRUNCATED = (
    "Your answer reached the maximum length inside this call and was cut. Nothing was done. Send less in one call: "
    "a long file in several steps, its beginning first."
)
RESEND_VALID = "Nothing was done, because another call was broken. Send this call again too."


class ArgumentRepair:
    """If the second answer is broken too, it is passed on unchanged; the tool registry refuses the call."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        first: Answer | None = None
        async with open_answer(self._model, request) as items:
            async for item in items:
                if isinstance(item, Answer) and has_broken_call(item):
                    first = item
                else:
                    yield item
        if first is not None:
            async with open_answer(self._model, argument_repair_request(request, first)) as items:
                async for item in items:
                    yield add_usage(first, item) if isinstance(item, Answer) else item


def has_broken_call(answer: Answer) -> bool:
    return any(arguments_error(call) for call in answer.calls)


def arguments_error(call: ToolCall) -> str:
    """What is wrong with the arguments of a call; empty if they are valid."""
    try:
        msgspec.json.decode(call.arguments or "{}", type=dict[str, object])
    except DECODE_ERRORS as error:
        return str(error)
    return ""


def argument_repair_request(request: Request, answer: Answer) -> Request:
    """The same request, followed by the broken calls and their errors."""
    reply = Message(
        role="assistant", text=answer.text, calls=tuple(quote_broken(call) for call in answer.calls)
    )
    is_truncated = answer.stop == "length"
    results = [
        Message(role="tool", text=error_message(call, is_truncated), call=call.id) for call in answer.calls
    ]
    return replace(request, messages=(*request.messages, reply, *results))


def error_message(call: ToolCall, is_truncated: bool) -> str:
    error = arguments_error(call)
    return (TRUNCATED if is_truncated else BROKEN.format(error)) if error else RESEND_VALID


def quote_broken(call: ToolCall) -> ToolCall:
    """Quote broken arguments, because some servers refuse a history that contains them."""
    if not arguments_error(call):
        return call
    return replace(call, arguments=msgspec.json.encode({"unreadable": call.arguments}).decode())


def add_usage(first: Answer, second: Answer) -> Answer:
    return replace(second, usage=first.usage.plus(second.usage), seconds=first.seconds + second.seconds)


TOOL_BLOCK = re.compile(r"^```tool[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
JSON_BLOCK = re.compile(r"^```(?:json)?[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
TOOLS = """\
You have tools. To use one, write a block like this, one for each use, and nothing after the last:
```tool
{{"name": "NAME", "arguments": {{…}}}}
```
The tools, with the JSON schema of their arguments:
{}"""
SCHEMA = "Reply with one ```json block and nothing else. It must fit this JSON schema:\n{}"
REPAIR = "That could not be read ({}). Reply again, with one whole block in the form that was described."


class ToolBlock(msgspec.Struct):
    """The JSON in a tool block."""

    name: str
    arguments: dict[str, object] = {}


class TextProtocol:
    """Sends requests unchanged until the server reports a missing feature, and from then on replaces that by text.

    A request with images that is rejected for another reason is sent once more without them: the error messages of
    servers without image input are too varied to recognise.
    """

    def __init__(self, model: Model, missing: frozenset[str] = frozenset()) -> None:
        self._model = model
        self._missing = missing

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        lacks = self._missing
        while True:
            reduced = without_features(request, lacks)
            model = self._model if reduced is request else BlockReader(self._model, request, lacks)
            try:
                async with open_answer(model, reduced) as items:
                    async for item in items:
                        yield item
                return
            except (FeatureMissing, RequestRejected) as error:
                fault = error
            missing = (
                fault.feature
                if isinstance(fault, FeatureMissing)
                else "images"
                if has_images(reduced)
                else ""
            )
            if not missing or missing in lacks:
                raise fault
            lacks |= {missing}
            self._missing |= {missing} if isinstance(fault, FeatureMissing) else set[str]()


class BlockReader:
    """Parses the blocks of an answer; if they are invalid, asks once more."""

    def __init__(self, model: Model, request: Request, lacks: frozenset[str]) -> None:
        self._model = model
        self._schema = request.schema if "schema" in lacks else None
        self._tools = {offer.name for offer in request.tools} if "tools" in lacks else set[str]()

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        first: Answer | None = None
        problem = ""
        async with open_answer(self._model, request) as items:
            async for item in items:
                parsed = self._parse(item)
                if isinstance(parsed, str):
                    assert isinstance(item, Answer)
                    first, problem = item, parsed
                else:
                    yield parsed
        if first is not None:
            yield Delta(restarted=True)
            async with open_answer(self._model, text_repair_request(request, first, problem)) as items:
                async for item in items:
                    yield self._parse_second(first, item)

    def _parse_second(self, first: Answer, item: Item) -> Item:
        parsed = self._parse(item)
        if isinstance(parsed, str):
            raise InvalidAnswer(f"the answer is not in the requested form ({parsed})")
        return add_usage(first, parsed) if isinstance(parsed, Answer) else parsed

    def _parse(self, item: Item) -> Item | str:
        """The item as the caller expects it, or a description of its error."""
        if isinstance(item, Delta):
            return item
        calls = parse_calls(item.text, self._tools) if self._tools else []
        if isinstance(calls, str):
            return calls
        if calls:
            text = TOOL_BLOCK.sub("", item.text).strip()
            return replace(item, text=text, calls=tuple(calls), stop="calls")
        if self._schema is None:
            return item
        body = parse_json(item.text, self._schema)
        return replace(item, text=body) if body.startswith("{") else body


def without_features(request: Request, lacks: frozenset[str]) -> Request:
    """The request without the features that the server lacks; the same object if it uses none of them."""
    rules: list[str] = []
    if "images" in lacks and has_images(request):
        request = replace(request, messages=tuple(map(without_images, request.messages)))
    messages = request.messages
    if "tools" in lacks and (request.tools or any(message.calls or message.call for message in messages)):
        rules += [TOOLS.format("\n".join(map(offer_text, request.tools)))] if request.tools else []
        messages = tuple(plain_message(message) for message in messages)
        request = replace(request, tools=())
    if "schema" in lacks and request.schema is not None:
        rules.append(SCHEMA.format(msgspec.json.encode(request.schema).decode()))
        request = replace(request, schema=None)
    if not rules and messages == request.messages:
        return request
    # In the system prompt, so that the beginning of the prompt stays the same and can be cached.
    system = (Message(role="system", text="\n\n".join([*system_texts(messages), *rules])),)
    return replace(
        request, messages=system + tuple(message for message in messages if message.role != "system")
    )


def has_images(request: Request) -> bool:
    return any(message.images for message in request.messages)


def without_images(message: Message) -> Message:
    """A message with its images replaced by a note."""
    if not message.images:
        return message
    note = f"({pluralize(len(message.images), 'picture')} that you cannot see)"
    return replace(message, text="\n\n".join(filter(None, [message.text, note])), images=())


def system_texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.role == "system"]


def offer_text(offer: ToolOffer) -> str:
    return f"- {offer.name}: {offer.description} {msgspec.json.encode(offer.parameters).decode()}"


def plain_message(message: Message) -> Message:
    """A message with its tool calls or its tool result as text."""
    if message.role == "tool":
        return Message(role="user", text=f"Result of {message.call}:\n{message.text}", images=message.images)
    blocks = [
        f'```tool\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n```' for call in message.calls
    ]
    return replace(message, text="\n\n".join(filter(None, [message.text, *blocks])), calls=())


def parse_calls(text: str, known: set[str]) -> list[ToolCall] | str:
    """The tool calls in an answer, or a description of the first error."""
    calls: list[ToolCall] = []
    for number, block in enumerate(TOOL_BLOCK.finditer(text), start=1):
        try:
            call = msgspec.json.decode(block["body"], type=ToolBlock)
        except DECODE_ERRORS as error:
            return str(error)
        if call.name not in known:
            return f"there is no tool '{call.name}', only {', '.join(sorted(known))}"
        arguments = msgspec.json.encode(call.arguments).decode()
        calls.append(ToolCall(id=f"call_{number}", name=call.name, arguments=arguments))
    return calls


def parse_json(text: str, schema: dict[str, object]) -> str:
    """The JSON object in an answer, or a description of its error."""
    block = JSON_BLOCK.search(text)
    body = (block["body"] if block else text[text.find("{") : text.rfind("}") + 1]).strip()
    try:
        fields = msgspec.json.decode(body, type=dict[str, object])
    except DECODE_ERRORS as error:
        return f"no JSON object: {error}"
    required = msgspec.convert(schema.get("required", []), list[str])
    missing = [name for name in required if name not in fields]
    return f"'{missing[0]}' is missing" if missing else body


def text_repair_request(request: Request, answer: Answer, error: str) -> Request:
    reply = Message(role="assistant", text=answer.text or "(nothing)")
    return replace(
        request, messages=(*request.messages, reply, Message(role="user", text=REPAIR.format(error)))
    )
