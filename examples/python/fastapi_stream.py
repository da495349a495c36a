"""An endpoint that streams a team's events and words: `uvicorn fastapi_stream:app`, then /build?goal=…"""

import json
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from septet import Recorded, Team, to_json

app = FastAPI()


@app.get("/build")
async def build(goal: str, workspace: str) -> StreamingResponse:
    async def stream() -> AsyncIterator[str]:
        async with Team.load("iterate") as team:
            async for item in team.start(goal, workspace=workspace, tokens=True):
                stored = isinstance(item, Recorded)
                yield f"data: {to_json(item) if stored else json.dumps({'token': getattr(item, 'text', '')})}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")
