"""A kind of check from outside of the package: a file is no longer than so many lines."""

from septet.agents.checks import CheckContext, CheckKind, Observation


async def look(context: CheckContext, argument: str) -> Observation:
    path, _, most = argument.partition(" ")
    content = await context.content(path)
    if content is None or not most.isdigit():
        return Observation(holds=False, detail=f"there is no {path}, or no limit")
    count = len(content.splitlines())
    return Observation(holds=count <= int(most), detail=f"{count} of {most} lines")


KIND = CheckKind(name="lines", form="lines PATH N (the file has at most N lines)", look=look)
