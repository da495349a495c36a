"""An autocoder in this process, over the real store, sandbox and scripted model, that can be stopped anywhere."""

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from septet.domain.events import Event
from septet.domain.teams import TeamSpec
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model


def home_in(folder: Path) -> Home:
    root = folder / "home"
    return Home(data=root, config=root / "config", cache=root / "cache")


def team(rounds: int = 20, name: str = "autocoder") -> TeamSpec:
    return replace(TEAMS[name], budget=replace(TEAMS[name].budget, rounds=rounds))


async def play(
    folder: Path, model: str, until: Callable[[Event], bool] = lambda _: False, spec: TeamSpec | None = None
) -> list[Event]:
    """Start or resume the chat `c` in folder/project; everything in its log afterwards."""
    async with open_session(home_in(folder)) as session:
        if not await session.log("c"):
            await session.start("greet", with_model(spec or team(), model), folder / "project", "c")
        sandbox = await session.sandbox()
        async with aclosing(session.perform("c", sandbox)) as performance:
            async for recorded in performance:
                if until(recorded.event):
                    break
        return [recorded.event for recorded in await session.log("c")]


def only(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]
