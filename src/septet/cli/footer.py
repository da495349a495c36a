"""The bottom of the screen while the team works: where the chat stands, and the line that the person types."""

import math
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskStatus
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
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

HINT = "type here what the next turn shall know"
DIM = "fg:ansibrightblack"


class Footer:
    """Drawn below all that is printed. A line goes to who asked for it, else to `words`, and waits in `queued`."""

    def __init__(self, standing: Callable[[], str], listening: bool) -> None:
        self.queued: list[str] = []
        self.words, self.spoken = anyio.create_memory_object_stream[str](math.inf)
        self._answer, self._answered = anyio.create_memory_object_stream[str | SeptetError](math.inf)
        self._standing = standing
        self._question = ""
        self._listening = listening
        self._line = Buffer(multiline=False, accept_handler=self._accept_line)
        self._application: Application[None] | None = None

    @property
    def unsent_text(self) -> str:
        """What was typed and not sent."""
        return self._line.text

    async def show(self, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Stay on the screen until `close`; the terminal is then as it was."""
        with ExitStack() as stack, anyio.CancelScope(shield=True):
            keyboard = (
                create_input(sys.stdin) if self._listening else stack.enter_context(create_pipe_input())
            )
            self._application = Application[None](
                layout=self._layout(),
                key_bindings=self._keys(),
                input=keyboard,
                output=unasked_output(),
                erase_when_done=True,
                refresh_interval=1.0,
                terminal_size_polling_interval=None,
            )
            try:
                await self._application.run_async(
                    task_status.started, set_exception_handler=False, handle_sigint=False
                )
            except EOFError:  # the terminal was closed: nobody types, and the team goes on
                self._listening = False
                self._answer.send_nowait(terminal_closed())
            finally:
                self._application = None

    def close(self) -> None:
        self.words.close()
        if self._application is not None and not self._application.is_done:
            self._application.exit()

    async def ask(self, prompt: str) -> str:
        """What the person says to this; what they were typing just then becomes the beginning of it."""
        if not self._listening:
            raise terminal_closed()
        self._question = prompt
        self._redraw()
        try:
            said = await self._answered.receive()
        finally:
            self._question = ""
        if isinstance(said, SeptetError):
            raise said
        return said

    @contextmanager
    def out_of_the_way(self) -> Generator[None, None, None]:
        """For printing: what is printed stands above."""
        if self._application is not None and self._application.is_running:
            self._application.renderer.erase()
        yield
        self._redraw()

    @asynccontextmanager
    async def handed_over(self) -> AsyncGenerator[None, None]:
        """The terminal for another program, as that expects it."""
        if self._application is None:
            yield
            return
        with set_app(self._application):
            async with in_terminal():
                yield

    def remove_queued(self, text: str) -> None:
        """These words are in the log, where the next turn finds them."""
        if text in self.queued:
            self.queued.remove(text)

    def _redraw(self) -> None:
        if self._application is not None:
            self._application.invalidate()

    def _accept_line(self, line: Buffer) -> bool:
        """Enter was pressed; says whether the line stays as it is."""
        text = to_utf8(line.text)
        if self._question:
            with self.out_of_the_way():
                sys.stderr.write(f"{self._question}{printable(text)}\n")
                sys.stderr.flush()
            self._question = ""
            self._answer.send_nowait(text)
        elif text.strip():
            self.queued.append(text.strip())
            self.words.send_nowait(text.strip())
        return False

    def _layout(self) -> Layout:
        asked, empty = Condition(lambda: bool(self._question)), Condition(lambda: not self._line.text)
        hint = ConditionalProcessor(AfterInput(HINT, style=DIM), empty & ~asked)
        control = BufferControl(
            self._line, input_processors=[BeforeInput(lambda: self._question or "> "), hint]
        )
        line = Window(control, wrap_lines=True, dont_extend_height=True)
        standing = Window(FormattedTextControl(self._words), wrap_lines=True, dont_extend_height=True)
        return Layout(
            HSplit(
                [
                    ConditionalContainer(standing, ~asked),
                    ConditionalContainer(line, Condition(lambda: self._listening)),
                ]
            )
        )

    def _words(self) -> StyleAndTextTuples:
        waiting = [f"queued for the next turn: {' '.join(text.split())}" for text in self.queued]
        return [(DIM, "\n".join([*waiting, self._standing()]))]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        leaving = Condition(lambda: bool(self._question) and not self._line.text)

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
        keys.add("c-d", filter=leaving)(leave)
        keys.add("c-z")(suspend)
        return keys


def unasked_output() -> Output:
    """Stderr, which is never asked where its cursor is: the answer would come as if it were typed."""
    output = create_output(sys.stderr)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
