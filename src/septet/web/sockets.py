"""The WebSocket of a page: history, then live events, without gaps or duplicates, also after a reconnect."""

from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from septet.errors import SeptetError
from septet.ports import EventStore
from septet.web.app_state import AppState
from septet.web.channels import (
    Channel,
    Frame,
    Frames,
    chat_frame,
    history_frames,
    pieces_frame,
    ready_frame,
    status_frame,
)
from septet.web.requests import parse_whole_number

TOO_SLOW = 4429
CHAT_NOT_FOUND = 4404


async def serve_socket(socket: WebSocket, app: AppState) -> None:
    """Send the list of chats, and one chat if the URL names one (`?chat=NAME&after=SEQ`)."""
    chat = socket.query_params.get("chat", "")
    try:
        after = parse_whole_number(socket.query_params.get("after", "0"), "after")
        state = await app.chats.state(chat) if chat else None
    except SeptetError as error:
        await socket.accept()
        await socket.close(CHAT_NOT_FOUND, error.cause[:100])
        return
    await socket.accept()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_disconnect, socket, tasks.cancel_scope)
        tasks.start_soon(send_chat_list, socket, app)
        if state is not None:
            async with app.channels.open(state) as channel, channel.listen() as frames:
                async for frame in frames_after(channel, frames, after, app):
                    await send_frame(socket, frame)
            await close(socket, TOO_SLOW)


async def send_chat_list(socket: WebSocket, app: AppState) -> None:
    async with app.chat_list.listen() as frames:
        await send_frame(socket, await app.chat_list.snapshot())
        async for frame in frames:
            await send_frame(socket, frame)


async def frames_after(channel: Channel, frames: Frames, after: int, app: AppState) -> AsyncIterator[Frame]:
    """Yield everything after a sequence number, then each new frame, without duplicates.

    The caller subscribes to `frames` before the history is read, so nothing is lost in between. Sequence numbers
    have gaps, so only the last one sent tells which events the watcher has.
    """
    store: EventStore = app.session.store
    yield chat_frame(channel.state)
    sent = after
    for frame in history_frames(await store.read(channel.chat, after)):
        yield frame
        sent = frame.last
    channel.flush()
    yield pieces_frame(channel.streams.snapshot())
    yield status_frame(app.runner.status(channel.chat))
    yield ready_frame(sent)
    async for frame in frames:
        if not frame.last or frame.last > sent:
            yield frame
            sent = max(sent, frame.last)


async def send_frame(socket: WebSocket, frame: Frame) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with suppress(WebSocketDisconnect):  # `wait_for_disconnect` handles it
            await socket.send_text(frame.text)


async def close(socket: WebSocket, code: int) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with suppress(WebSocketDisconnect):
            await socket.close(code)


async def wait_for_disconnect(socket: WebSocket, scope: anyio.CancelScope) -> None:
    """Cancel everything done for the page when it disconnects; it sends nothing over its socket."""
    try:
        while True:
            await socket.receive_text()
    except (WebSocketDisconnect, KeyError, RuntimeError):
        scope.cancel()
