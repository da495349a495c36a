"""The errors that a person must fix, as one small tree. Errors that a model can fix are returned as values.

SeptetError            1    a defect of ours, or a broken installation
├── BadUsage           2    the command line or an API call is not valid
├── Overdrawn          3    a request would exceed a budget; it was not sent
├── NeedsPerson        4    the chat needs an answer, and no person is connected
├── BadConfig          5    a team file, script, setting or key is wrong
│   └── NoModel        5    no model was found
├── NoSandbox          6    no sandbox works here
├── SandboxFailed      75   the sandbox itself failed; never shown as the program's output
├── ModelFailed        75   the model's service failed for now; the chat can be resumed
├── Conflict           75   another conductor has the chat
├── Unreachable        75   another machine does not answer, or not in time
├── RemoteFailed       75   a handler on another machine failed; carries its type and text
├── Interrupted        130  the person interrupted; everything up to then is in the log
│   └── Stopped        143  a signal ended it; the same
└── StoreFailed        75   the log could not be written (disk full, locked); nothing is lost
    └── LogDamaged     1    the log is not a Septet log, is newer than this program, or is damaged
"""

from typing import ClassVar


class SeptetError(Exception):
    """Has cause and remedy in one line; `exit_code` is the exit code of the command line."""

    exit_code: ClassVar[int] = 1

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause = " ".join(cause.split())
        self.remedy = " ".join(remedy.split())
        super().__init__(f"{self.cause}: {self.remedy}" if remedy else self.cause)


def innermost(error: BaseException) -> BaseException:
    """The error inside exception groups, if it is a single one."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return innermost(inner[0]) if len(inner) == 1 else error


def as_septet_error(error: BaseException) -> SeptetError:
    """Any exception as a SeptetError; an unexpected one becomes an internal error."""
    error = innermost(error)
    if isinstance(error, SeptetError):
        return error
    return SeptetError(f"internal error ({type(error).__name__}: {str(error)[:200]})")


class BadUsage(SeptetError):
    exit_code = 2


class Overdrawn(SeptetError):
    exit_code = 3


class NeedsPerson(SeptetError):
    exit_code = 4


class BadConfig(SeptetError):
    exit_code = 5


class NoModel(BadConfig):
    pass


class NoSandbox(SeptetError):
    exit_code = 6


class SandboxFailed(SeptetError):
    exit_code = 75


class ModelFailed(SeptetError):
    exit_code = 75


class Conflict(SeptetError):
    exit_code = 75


class Unreachable(SeptetError):
    exit_code = 75


class RemoteFailed(SeptetError):
    exit_code = 75


class Interrupted(SeptetError):
    exit_code = 130


class Stopped(Interrupted):
    exit_code = 143


class StoreFailed(SeptetError):
    exit_code = 75


class LogDamaged(StoreFailed):
    exit_code = 1
