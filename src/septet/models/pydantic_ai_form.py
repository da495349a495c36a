"""Requests and answers in the terms of pydantic-ai, which knows many more providers than the wires here."""

from collections.abc import Iterable

import msgspec
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from septet.domain.talk import Answer, Delta, Message, Request, StopReason, ToolCall, ToolOffer, Usage
from septet.models.encoding import Loader, contents, media_type
from septet.models.faults import Filtered, Garbled


async def history(messages: Iterable[Message], load: Loader | None) -> list[ModelMessage]:
    """Each message in order; a result is filed under the name of the tool whose call it answers."""
    names: dict[str, str] = {}
    found: list[ModelMessage] = []
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        if message.role == "assistant":
            found.append(ModelResponse(parts=said(message)))
        else:
            found.append(ModelRequest(parts=[await told(message, names, load)]))
    return found


def said(message: Message) -> list[ModelResponsePart]:
    calls = [
        ToolCallPart(tool_name=call.name, args=call.arguments or "{}", tool_call_id=call.id)
        for call in message.calls
    ]
    return [*([TextPart(content=message.text)] if message.text or not calls else []), *calls]


async def told(message: Message, names: dict[str, str], load: Loader | None) -> ModelRequestPart:
    if message.role == "system":
        return SystemPromptPart(content=message.text)
    if message.role == "tool":
        name = names.get(message.call, "")
        return ToolReturnPart(tool_name=name, content=message.text, tool_call_id=message.call)
    shown = await contents(load, message)
    if not shown:
        return UserPromptPart(content=message.text)
    parts: list[UserContent] = [BinaryContent(data=one, media_type=media_type(one)) for one in shown]
    return UserPromptPart(content=[message.text, *parts] if message.text else parts)


def parameters(request: Request) -> ModelRequestParameters:
    offers = [definition(offer) for offer in request.tools]
    if request.schema is None:
        return ModelRequestParameters(function_tools=offers)
    wanted = OutputObjectDefinition(json_schema=request.schema, name="reply")
    return ModelRequestParameters(
        function_tools=offers, output_mode="native", output_object=wanted, allow_text_output=True
    )


def definition(offer: ToolOffer) -> ToolDefinition:
    return ToolDefinition(
        name=offer.name, description=offer.description, parameters_json_schema=offer.parameters
    )


def settings(request: Request, silent_seconds: float) -> ModelSettings:
    """No retries of its own: the wrappers here ask again, and say so."""
    found = ModelSettings(timeout=silent_seconds, max_retries=0)
    if request.temperature is not None:
        found["temperature"] = request.temperature
    if request.max_tokens is not None:
        found["max_tokens"] = request.max_tokens
    return found


def piece(event: ModelResponseStreamEvent) -> Delta | None:
    """What an event adds to the text or to the reasoning."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return Delta(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return Delta(reasoning=text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return Delta(text=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text)) if text:
            return Delta(reasoning=text)
        case _:
            return None


def answered(response: ModelResponse, seconds: float) -> Answer:
    """The whole answer, if it is one."""
    if response.finish_reason is None or response.state != "complete":
        raise Garbled("the stream ended without a finish reason")
    if response.finish_reason == "content_filter":
        raise Filtered("the provider's content filter stopped the answer")
    calls = tuple(wish(part) for part in response.parts if isinstance(part, ToolCallPart))
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    cut: StopReason = "length" if response.finish_reason == "length" else "finished"
    if not text and not calls and cut == "finished":
        raise Garbled("the answer was empty")
    return Answer(
        text=text,
        model=response.model_name or "",
        calls=calls,
        reasoning="".join(part.content for part in response.parts if isinstance(part, ThinkingPart)),
        stop="calls" if calls else cut,
        usage=Usage(
            prompt=response.usage.input_tokens,
            cached=response.usage.cache_read_tokens,
            completion=response.usage.output_tokens,
        ),
        seconds=seconds,
    )


def wish(part: ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else msgspec.json.encode(part.args or {}).decode()
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments)
