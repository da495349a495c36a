"""Round-robin chats on autogen-ext's gRPC runtime, for `bench/distributed.py`; runs in an environment of its own.

autogen_chats.py host ADDRESS
autogen_chats.py writer|editor ADDRESS
autogen_chats.py manager ADDRESS CHATS TURNS REQUESTS
"""

import asyncio
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    TopicId,
    TypeSubscription,
    message_handler,
    try_get_known_serializers_for_type,
)
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

SPEAKERS = ("writer", "editor")


@dataclass
class RequestToSpeak:
    turn: int


@dataclass
class Say:
    turn: int
    text: str


class Speaker(RoutedAgent):
    @message_handler
    async def speak(self, message: RequestToSpeak, ctx: MessageContext) -> Say:
        say = Say(message.turn, "x" * 200)
        if ctx.topic_id is not None:
            await self.publish_message(say, TopicId("group", self.id.key))
        return say


class Manager(RoutedAgent):
    turns = 0
    left = 0
    done = None

    @message_handler
    async def hear(self, message: Say, ctx: MessageContext) -> None:
        if message.turn < Manager.turns:
            topic = TopicId(SPEAKERS[message.turn % 2], self.id.key)
            await self.publish_message(RequestToSpeak(message.turn + 1), topic)
            return
        Manager.left -= 1
        if not Manager.left:
            Manager.done.set()


async def worker(address: str) -> GrpcWorkerAgentRuntime:
    runtime = GrpcWorkerAgentRuntime(host_address=address)
    for kind in (RequestToSpeak, Say):
        runtime.add_message_serializer(try_get_known_serializers_for_type(kind))
    await runtime.start()
    return runtime


async def manage(address: str, chats: int, turns: int, requests: int) -> None:
    runtime = await worker(address)
    await Manager.register(runtime, "manager", lambda: Manager("manager"))
    await runtime.add_subscription(TypeSubscription("group", "manager"))
    Manager.turns, Manager.left, Manager.done = turns, chats, asyncio.Event()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    started = perf_counter()
    for chat in range(chats):
        await runtime.publish_message(RequestToSpeak(1), TopicId("writer", f"chat-{chat}"))
    await Manager.done.wait()
    print(f"wall {perf_counter() - started}", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    times = []
    for _ in range(requests):
        started = perf_counter()
        await runtime.send_message(RequestToSpeak(1), AgentId("writer", "asked"))
        times.append(perf_counter() - started)
    print(f"p50 {median(times)}", flush=True)


async def main() -> None:
    kind, address = sys.argv[1:3]
    if kind == "host":
        host = GrpcWorkerAgentRuntimeHost(address=address)
        host.start()
        print("ready", flush=True)
        await host.stop_when_signal()
    elif kind == "manager":
        await manage(address, *map(int, sys.argv[3:6]))
    else:
        runtime = await worker(address)
        await Speaker.register(runtime, kind, lambda: Speaker(kind))
        await runtime.add_subscription(TypeSubscription(kind, kind))
        print("ready", flush=True)
        await runtime.stop_when_signal()


asyncio.run(main())
