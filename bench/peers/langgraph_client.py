"""LangGraph: two nodes that call ChatOpenAI, with its SQLite checkpoints, stored before the next step (sync)."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from play import LONG, SYSTEM, main


class Client:
    def __init__(self, model, saver):
        self.model = model
        self.saver = saver

    def graph(self, turns):
        async def node(state: MessagesState):
            return {"messages": [await self.model.ainvoke([SystemMessage(SYSTEM), *state["messages"]])]}

        graph = StateGraph(MessagesState)
        graph.add_edge(START, "writer")
        for name, other in (("writer", "editor"), ("editor", "writer")):
            graph.add_node(name, node)
            graph.add_conditional_edges(
                name,
                lambda state, other=other: END if len(state["messages"]) > turns else other,
                [END, other],
            )
        return graph.compile(checkpointer=self.saver)

    def config(self, name, turns):
        return {"configurable": {"thread_id": name}, "recursion_limit": turns + 5}

    async def talk(self, name, turns):
        given = {"messages": [{"role": "user", "content": "Begin."}]}
        done = await self.graph(turns).ainvoke(given, self.config(name, turns), durability="sync")
        assert len(done["messages"]) == turns + 1

    async def stream(self):
        given = {"messages": [{"role": "user", "content": LONG}]}
        length = 0
        async for piece, _ in self.graph(1).astream(given, self.config("long", 1), stream_mode="messages"):
            length += len(piece.content)
        return length


@asynccontextmanager
async def open_client(url):
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncSqliteSaver.from_conn_string(str(Path(folder) / "log.db")) as saver:
            yield Client(ChatOpenAI(model="mock", base_url=url, api_key="k"), saver)


if __name__ == "__main__":
    main(open_client)
