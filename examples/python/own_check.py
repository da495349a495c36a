"""A kind of check from outside: `check: lines PATH N`. An installed one has an entry point in `septet.checks`."""

from septet.agents.checks import CheckContext, CheckKind, Observation, add_check


async def look(context: CheckContext, argument: str) -> Observation:
    path, _, most = argument.partition(" ")
    lines = (await context.content(path) or b"").splitlines()
    return Observation(holds=0 < len(lines) <= int(most), detail=f"{len(lines)} of {most} lines")


KIND = add_check(CheckKind(name="lines", form="lines PATH N (the file has at most N lines)", look=look))
