"""Before a run: what the newest code imports and nobody provides is wanted, agreed upon and installed."""

from collections.abc import AsyncGenerator, Mapping

from septet.domain.events import PackageEvent, PackagesDecided, PackagesInstalled, PackagesWanted
from septet.domain.packages import Missing
from septet.domain.reduce import reduce_packages
from septet.domain.state import State
from septet.ports import Packages


async def providing(
    state: State, packages: Packages | None, sources: Mapping[str, str]
) -> AsyncGenerator[PackageEvent, None]:
    """As far as it can go now: where the person has to agree, it ends with the wish."""
    missing = await open_wish(state, packages, sources)
    if packages is None or not missing:
        return
    if missing != state.provisions.wanted:
        wanted = PackagesWanted(missing=missing)
        state = reduce_packages(state, wanted)
        yield wanted
    if state.team.packages == "auto" and state.provisions.asked:
        decided = PackagesDecided(names=tuple(sorted(missing.names)), allowed=True, by="policy")
        state = reduce_packages(state, decided)
        yield decided
    if not state.provisions.asked:
        yield PackagesInstalled(installation=await packages.install(state.workspace, missing))


async def open_wish(state: State, packages: Packages | None, sources: Mapping[str, str]) -> Missing:
    if packages is None or state.team.packages == "off":
        return Missing()
    return state.provisions.fresh(await packages.missing(state.workspace, sources))


def waits(state: State) -> bool:
    """Nothing is run before the person has said yes or no."""
    return state.team.packages == "ask" and bool(state.provisions.asked)
