"""Septet by its public API: a group chat of two, with its durable log."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from play import LONG, main

from septet import Team

TEAM = "way: group_chat\nmembers:\n- {role: writer, name: writer}\n- {role: editor, name: editor}\n"


class Client:
    def __init__(self, url, folder):
        self.options = {"model": f"url:{url}#mock", "home": folder / "home"}
        self.file = str(folder / "team.yaml")
        self.teams = {}
        Path(self.file).write_text(TEAM)

    async def team(self, turns):
        if turns not in self.teams:
            self.teams[turns] = await Team.load(
                self.file, budget={"rounds": turns}, **self.options
            ).__aenter__()
        return self.teams[turns]

    async def talk(self, name, turns):
        result = await (await self.team(turns)).start("a poem")
        assert result.status == "rounds", result

    async def stream(self):
        length = 0
        async for item in (await self.team(1)).start(LONG, tokens=True):
            length += len(getattr(item, "text", ""))
        return length


@asynccontextmanager
async def open_client(url):
    with tempfile.TemporaryDirectory() as folder:
        client = Client(url, Path(folder))
        yield client
        for team in client.teams.values():
            await team.__aexit__()


if __name__ == "__main__":
    main(open_client)
