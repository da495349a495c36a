"""The bottom of the screen while the team works: the chat's status and the line that the person types."""

import math
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from shutil import get_terminal_size

import anyio
from anyio.abc import TaskStatus
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.input import create_input, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import AfterInput, BeforeInput, ConditionalProcessor
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from septet.cli.person import interrupted_error, terminal_closed, to_utf8
from septet.common.text import printable
from septet.errors import SeptetError

HINT = "type a message for the next turn"
DIM = "fg:ansibrightblack"
LIVE_LINES = 10
"""How many lines of what is being said are shown."""


class Footer:
    """Drawn below the printed text. A typed line answers the open question, else it is a message and is `queued`."""

    def __init__(
        self, status: Callable[[int], str], listening: bool, live: Callable[[int, int], str]
    ) -> None:
        self.queued: list[str] = []
        self.send_messages, self.messages = anyio.create_memory_object_stream[str](math.inf)
        self._answer, self._answers = anyio.create_memory_object_stream[str | SeptetError](math.inf)
        self._status = status
        self._live = live
        self._question = ""
        self._listening = listening
        self._line = Buffer(multiline=False, accept_handler=self._accept_line)
        self._application: Application[None] | None = None

    @property
    def unsent_text(self) -> str:
        """The text that was typed but not sent."""
        return self._line.text

    async def show(self, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Stay on the screen until `close`, then restore the terminal."""
        with ExitStack() as stack, anyio.CancelScope(shield=True):
            keyboard = (
                create_input(sys.stdin) if self._listening else stack.enter_context(create_pipe_input())
            )
            self._application = Application[None](
                layout=self._layout(),
                key_bindings=self._keys(),
                input=keyboard,
                output=output_without_queries(),
                erase_when_done=True,
                refresh_interval=1.0,
                min_redraw_interval=0.05,
                terminal_size_polling_interval=None,
            )
            try:
                await self._application.run_async(
                    task_status.started, set_exception_handler=False, handle_sigint=False
                )
            except EOFError:  # the terminal was closed: the team continues without input
                self._listening = False
                self._answer.send_nowait(terminal_closed())
            finally:
                self._application = None

    def close(self) -> None:
        self.send_messages.close()
        if self._application is not None and not self._application.is_done:
            self._application.exit()

    async def ask(self, prompt: str) -> str:
        """Ask a question; what the person was typing becomes the start of the answer."""
        if not self._listening:
            raise terminal_closed()
        self._question = prompt
        self.redraw()
        try:
            answer = await self._answers.receive()
        finally:
            self._question = ""
        if isinstance(answer, SeptetError):
            raise answer
        return answer

    @contextmanager
    def hidden(self) -> Generator[None, None, None]:
        """Hide the footer while something is printed above it."""
        if self._application is not None and self._application.is_running:
            self._application.renderer.erase()
        yield
        self.redraw()

    @asynccontextmanager
    async def release_terminal(self) -> AsyncGenerator[None, None]:
        """Give the terminal to another program, in its normal mode."""
        if self._application is None:
            yield
            return
        with set_app(self._application):
            async with in_terminal():
                yield

    def remove_queued(self, text: str) -> None:
        """Remove a message that is in the log now."""
        if text in self.queued:
            self.queued.remove(text)

    def redraw(self) -> None:
        if self._application is not None:
            self._application.invalidate()

    def _accept_line(self, line: Buffer) -> bool:
        """Handle Enter; returns False so that the line is cleared."""
        text = to_utf8(line.text)
        if self._question:
            with self.hidden():
                sys.stderr.write(f"{self._question}{printable(text)}\n")
                sys.stderr.flush()
            self._question = ""
            self._answer.send_nowait(text)
        elif text.strip():
            self.queued.append(text.strip())
            self.send_messages.send_nowait(text.strip())
        return False

    def _layout(self) -> Layout:
        is_asking, is_empty = Condition(lambda: bool(self._question)), Condition(lambda: not self._line.text)
        hint = ConditionalProcessor(AfterInput(HINT, style=DIM), is_empty & ~is_asking)
        control = BufferControl(
            self._line, input_processors=[BeforeInput(lambda: self._question or "> "), hint]
        )
        line = Window(control, wrap_lines=True, dont_extend_height=True)
        status = Window(FormattedTextControl(self._status_text), wrap_lines=True, dont_extend_height=True)
        live = Window(FormattedTextControl(self._live_text), dont_extend_height=True)
        return Layout(
            HSplit(
                [
                    ConditionalContainer(live, Condition(lambda: bool(self._live(2, 1))) & ~is_asking),
                    ConditionalContainer(status, ~is_asking),
                    ConditionalContainer(line, Condition(lambda: self._listening)),
                ]
            )
        )

    def _status_text(self) -> StyleAndTextTuples:
        queued = [f"queued for the next turn: {' '.join(text.split())}" for text in self.queued]
        return [(DIM, "\n".join([*queued, self._status(get_terminal_size().columns)]))]

    def _live_text(self) -> ANSI:
        size = get_terminal_size()
        return ANSI(self._live(size.columns, min(LIVE_LINES, size.lines // 3)))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        can_leave = Condition(lambda: bool(self._question) and not self._line.text)

        def interrupt(_: KeyPressEvent) -> None:
            if self._question:
                self._answer.send_nowait(interrupted_error())
            else:
                signal.raise_signal(signal.SIGINT)

        def leave(_: KeyPressEvent) -> None:
            self._answer.send_nowait(terminal_closed())

        def suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        keys.add("c-c")(interrupt)
        keys.add("c-d", filter=can_leave)(leave)
        keys.add("c-z")(suspend)
        return keys


def output_without_queries() -> Output:
    """Stderr without cursor position requests: the response would arrive as if it were typed."""
    output = create_output(sys.stderr)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
