"""The handle of a background run, which can be paused, stepped and stopped; and garbage collection settings."""

import gc
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from anyio import to_thread
from anyio.lowlevel import EventLoopToken, current_token

from septet.chat.results import Result
from septet.domain.events import ChatEnded, Recorded, TurnOpened
from septet.errors import BadUsage

OFTEN = 50_000
"""The threshold of the youngest generation, instead of 700: few of our objects are in cycles."""


def settle() -> None:
    """Freeze the objects that exist now, so that garbage collection never scans them again."""
    gc.freeze()
    gc.set_threshold(OFTEN, 10, 10)


Performance = AsyncGenerator[Recorded, None]
Perform = Callable[["Handle"], Awaitable[Result]]


class Gate:
    """Lets a run continue, pauses it, or lets it make one step at a time. A step is a turn of a member."""

    def __init__(self, closed: bool) -> None:
        self._changed = threading.Condition()
        self.closed = closed
        self._granted = 0
        self._role = ""
        self._over = False

    def open(self, closed: bool = False) -> None:
        with self._changed:
            self.closed = closed
            self._granted = 0
            self._changed.notify_all()

    def grant(self, timeout: float | None) -> bool:
        """Allow one step and wait until it is done; False if none is left."""
        with self._changed:
            if self._over:
                return False
            if not self.closed:
                raise BadUsage("the run is not paused", "call pause() first, or start with step=True")
            self._granted += 1
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._over or not self._granted, timeout):
                raise TimeoutError("the step is still under way")
            return True

    def wait(self) -> None:
        """Wait until the run may continue."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self.closed or self._granted > 0)

    def on_event(self, recorded: Recorded) -> None:
        """A turn is over as soon as the next one opens; the person's own turns are no steps."""
        event = recorded.event
        if not isinstance(event, TurnOpened | ChatEnded):
            return
        with self._changed:
            if self._granted and self._role not in ("", "proxy"):
                self._granted -= 1
            self._role = (event.role or event.speaker) if isinstance(event, TurnOpened) else ""
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


class Handle:
    """The handle that `autocoder` returns at once; the work continues in the background."""

    def __init__(self, perform: Perform, paused: bool = False) -> None:
        self._perform = perform
        self._gate = Gate(paused)
        self._stopping = threading.Event()
        self._scope: tuple[EventLoopToken, anyio.CancelScope] | None = None
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="septet autocoder")
        self._thread.start()
        hold_the_exit(self._leave)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def result(self) -> Result | None:
        """The result; None while the run continues."""
        return self._result

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def wait(self, timeout: float | None = None) -> Result:
        """Wait for the end; raises the error that stopped the run. Inside an event loop use `finished`."""
        self._thread.join(timeout)
        if self.running:
            raise TimeoutError("the run is still under way")
        if self._error is not None:
            raise self._error
        assert self._result is not None, "a run ends with a result or an error"
        return self._result

    async def finished(self) -> Result:
        """The same, inside an event loop."""
        return await to_thread.run_sync(self.wait, abandon_on_cancel=True)

    def pause(self) -> None:
        """Pause before the next event; what runs now is finished first."""
        self._gate.open(closed=True)

    def resume(self) -> None:
        self._gate.open()

    def step(self, timeout: float | None = None) -> bool:
        """Run exactly one step of a paused run and come back when it is done; False when all is over.

        Like `wait`, it raises what went wrong.
        """
        stepped = self._gate.grant(timeout)
        if self._error is not None:
            raise self._error
        return stepped

    def stop(self) -> Result:
        """Stop now: running work is cancelled, and the log says that it was stopped."""
        self._stopping.set()
        if self._scope is not None:
            cancel(*self._scope)
        return self.wait()

    async def follow(self, performance: Performance, hear: Callable[[Recorded], None]) -> None:
        """Run until the end, or until `stop` is called."""
        with anyio.CancelScope() as scope:
            self._scope = (current_token(), scope)
            if self._stopping.is_set():
                return
            async with aclosing(performance):
                while True:
                    await to_thread.run_sync(self._gate.wait, abandon_on_cancel=True)
                    recorded = await anext(performance, None)
                    if recorded is None:
                        return
                    hear(recorded)
                    self._gate.on_event(recorded)

    def _leave(self) -> None:
        """At the program's exit, wait for a run; a paused one stays as it is and can be resumed later."""
        if self._gate.closed and self._scope is not None:
            cancel(*self._scope)
        self._thread.join()

    def _work(self) -> None:
        try:
            self._result = anyio.run(self._perform, self)
        except BaseException as error:
            self._error = error
        finally:
            self._gate.finish()


def cancel(token: EventLoopToken, scope: anyio.CancelScope) -> None:
    """Cancel from another thread; a loop that is gone has nothing left to cancel."""
    try:
        anyio.from_thread.run_sync(scope.cancel, token=token)
    except (RuntimeError, anyio.RunFinishedError):
        return


def hold_the_exit(leave: Callable[[], None]) -> None:
    """A program whose last line is `autocoder(…)` waits for it, while name look-ups still have their threads."""
    register: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    if register is not None and threading.main_thread().is_alive():
        try:
            register(leave)
        except RuntimeError:  # the program is ending already
            return
