"""The Python API: teams that run goals, over the command line's loop."""

import asyncio
import inspect
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Self, TypedDict, Unpack

import anyio
import msgspec
from msgspec.structs import replace

from septet.agents.ask import Live, live_topic
from septet.agents.person import Ask, present
from septet.chat.results import Result, result_of
from septet.domain.codec import decode, encode
from septet.domain.events import PersonSpoke, Recorded
from septet.domain.packages import Policy
from septet.domain.runs import Network
from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.errors import BadUsage, NeedsPerson
from septet.models.providers.agent import PREFIX
from septet.models.providers.provider import Connections, ModelEndpoint, Provider
from septet.ports import Agent, BusMessage, EventStore, Model, Sandbox
from septet.runtime.log import Listen
from septet.settings.group_chats import without_models
from septet.settings.home import find_home
from septet.settings.team_files import check_team, load_team
from septet.team.questions import Question, check_action, question, read_answer
from septet.ways.endings import is_finished
from septet.ways.table import add_ways, as_much_again, thinkers
from septet.ways.way import Way
from septet.wiring.foreign_agents import check_agents
from septet.wiring.foreign_stores import open_installed_store
from septet.wiring.session import Session, open_session, open_session_on, with_model
from septet.wiring.shared_sandbox import SharedSandbox

GIVEN = "given:"
"""Prefix of the name that a model object has in the log."""
LIVE = msgspec.json.Decoder(Live)

Item = Recorded | Live | Question
"""What a run yields: a stored event, a piece of text while it is generated, a question to answer."""


class TeamOptions(TypedDict, total=False):
    """What a team can be loaded with; see `Team.load`."""

    model: str | Model
    models: Mapping[str, str | Model]
    home: str | Path
    budget: Budget | Mapping[str, float]
    network: Network
    packages: Policy
    ask: Ask
    unsafe_local: bool
    ways: Sequence[Way]
    agents: Mapping[str, Agent]
    store: EventStore | str


class Run:
    """One goal at work. It works in the background from the start; iterate for its items, await it for its result.

    run = team.start("an analog clock", tokens=True)
    async for item in run:
        ...
    result = await run
    """

    def __init__(self, session: Session, perform: Callable[["Run"], Awaitable[None]], tokens: bool) -> None:
        self.chat = ""
        """The name of the chat, once it has begun."""
        self._session = session
        self._tokens = tokens
        self._items: deque[Item] = deque()
        self._news = asyncio.Event()
        self._began = asyncio.Event()
        self._asked: asyncio.Future[str] | None = None
        self._action = ""
        self._result: Result | None = None
        self._scope = anyio.CancelScope()
        self._task = asyncio.ensure_future(self._perform(perform))
        self._task.add_done_callback(self._wake)

    async def __aiter__(self) -> AsyncGenerator[Item, None]:
        """Every item from the first one on, each once; raises what stopped the run."""
        while True:
            while self._items:
                yield self._items.popleft()
            if self._task.done():
                await self
                return
            self._news.clear()
            await self._news.wait()

    def __await__(self) -> Generator[object, None, Result]:
        yield from asyncio.wait([self._task]).__await__()
        self._task.result()
        return self.result

    @property
    def result(self) -> Result:
        """How it ended."""
        if self._result is None:
            raise BadUsage("the run has no result yet", "await the run first")
        return self._result

    async def answer(self, text: str, action: str = "") -> None:
        """Answer the question that the run asks now; with the `action` of a question only that one."""
        if self._asked is None or self._asked.done():
            raise BadUsage("the run asks nothing now", "answer after a Question; use steer for a remark")
        if action and action != self._action:
            raise NeedsPerson("the run asks something else by now", "answer its newest Question")
        self._asked.set_result(text)

    async def steer(self, text: str) -> None:
        """Say something to the team; the next member hears it."""
        waiters = [asyncio.ensure_future(self._began.wait()), self._task]
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        waiters[0].cancel()
        if not self._began.is_set():
            self._task.result()
        await self._session.append(self.chat, PersonSpoke(text=text))

    async def cancel(self) -> None:
        """Stop now. What is stored stays: `team.resume(run.chat)` goes on."""
        self.abort()
        await asyncio.wait([self._task])

    def abort(self) -> None:
        """Stop soon, from a function that cannot wait until it has."""
        self._scope.cancel()

    async def _perform(self, perform: Callable[["Run"], Awaitable[None]]) -> None:
        # Cancelled by a scope, so that what has to be finished, such as a write to the log, can shield itself.
        with self._scope:
            return await perform(self)
        raise asyncio.CancelledError

    async def ask(self, asked: Question) -> str:
        """Yield the question and wait for `answer`."""
        self._asked, self._action = asyncio.get_running_loop().create_future(), asked.action
        self._put(asked)
        return await self._asked

    def begin(self, chat: str, log: Sequence[Recorded] = ()) -> None:
        """The chat exists; `log` is what it holds by now."""
        self.chat = chat
        self._began.set()
        for recorded in log:
            self._put(recorded)

    async def follow(self, conduct: Callable[[Listen], Awaitable[State]]) -> None:
        """Conduct the chat and take its events, and the tokens beside them where they are wanted."""
        if not self._tokens:
            self._result = result_of(await conduct(self._hear))
            return
        async with (
            self._session.bus.subscribe(live_topic(self.chat)) as pieces,
            anyio.create_task_group() as group,
        ):
            group.start_soon(self._take_live, pieces)
            self._result = result_of(await conduct(self._hear))
            group.cancel_scope.cancel()

    async def _hear(self, recorded: Recorded) -> None:
        self._put(recorded)

    async def _take_live(self, pieces: AsyncIterator[BusMessage]) -> None:
        async for piece in pieces:
            self._put(LIVE.decode(piece.message))

    def _put(self, item: Item) -> None:
        self._items.append(item)
        self._news.set()

    def _wake(self, task: asyncio.Future[None]) -> None:
        self._news.set()
        with suppress(asyncio.CancelledError):
            task.exception()  # whoever iterates or awaits gets it; nobody has to


class Team:
    """A team, ready to work while its context is open.

    async with Team.load("iterate", model="scripted:demo/clock") as team:
        async for recorded in team.run("an analog clock"):
            print(recorded.seq, recorded.event)
        print(team.result.status, team.result.evidence, team.result.cost)
    """

    def __init__(self, spec: TeamSpec, options: TeamOptions) -> None:
        self.spec = spec
        self._options = options
        self._opened = AsyncExitStack()
        self._session: Session | None = None
        self._result: Result | None = None

    @classmethod
    def load(cls, team: str = "iterate", **options: Unpack[TeamOptions]) -> Self:
        """A built-in team or a team.yaml.

        `model` is a name, or any object with an async generator method `answer(request)`; `models` are those of some
        members, by the members' names. `ask` is awaited with each question; without it plans are approved as they
        come, unless a run is started with `ask=True`. `home` is where Septet keeps its data. `budget` (rounds, tokens,
        cost, seconds), `network` and `packages` replace what the team says. `ways` are ways of working of your own;
        their teams are known by their names.
        `agents` take the turns of members, by the members' names, without a model; `store`, an object or the name of
        an installed one, holds the log instead of the home's.
        """
        check_options(options)
        add_ways(options.get("ways", ()))
        model = model_name(options.get("model") or os.environ.get("SEPTET_MODEL", ""))
        loaded = check_team(load_team(team))
        loaded = without_models(loaded) if options.get("model") else loaded
        agents = {name: f"{PREFIX}{name}" for name in options.get("agents", {})}
        loaded = with_members_models(loaded, {**options.get("models", {}), **agents})
        ask = options.get("ask")
        if ask is None and (loaded.consult or loaded.stepwise):
            raise BadUsage(f"the team {loaded.name} wants to ask you (consult or stepwise)", "pass ask=…")
        return cls(with_model(with_choices(loaded, options), model), options)

    @classmethod
    def run_sync(cls, goal: str, team: str = "iterate", **options: Unpack[TeamOptions]) -> Result:
        """Build the goal and wait for the result, in a program without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(cls._run_alone(goal, team, options))
        raise BadUsage("an event loop is running already", "await team.start(goal) instead")

    @classmethod
    async def _run_alone(cls, goal: str, team: str, options: TeamOptions) -> Result:
        async with cls.load(team, **options) as loaded:
            return await loaded.start(goal)

    async def __aenter__(self) -> Self:
        options = self._options
        home = (
            find_home({**os.environ, "SEPTET_HOME": str(options["home"])})
            if "home" in options
            else find_home()
        )
        models = {"": options.get("model", ""), **options.get("models", {})}
        given = {model_name(one, member): one for member, one in models.items() if not isinstance(one, str)}
        providers = (provider_of(given),) if given else ()
        store = options.get("store")
        if isinstance(store, str):
            store = await self._opened.enter_async_context(open_installed_store(store, home.data))
        opening = (
            open_session_on(store, home, providers) if store else open_session(home, providers=providers)
        )
        self._session = await self._opened.enter_async_context(opening)
        self._session.own_agents = options.get("agents", {})
        return self

    async def __aexit__(self, *_: object) -> None:
        self._session = None
        await self._opened.aclose()

    @property
    def result(self) -> Result:
        """How the last `run` ended."""
        if self._result is None:
            raise BadUsage("the team has not run yet", "iterate over team.run(goal) first")
        return self._result

    async def run(
        self, goal: str, *, workspace: str | Path | None = None, name: str = ""
    ) -> AsyncGenerator[Recorded, None]:
        """Build the goal; every event comes as it is stored, in the envelope that `--json` prints."""
        session, ask = self.session, self._options.get("ask")
        chat = await session.start(goal, self._spec(asks=ask is not None), folder_of(workspace), name)
        for recorded in await session.log(chat):
            yield recorded
        person = present(ask) if ask else None
        async with aclosing(session.perform(chat, self.sandbox, person)) as performance:
            async for recorded in performance:
                yield recorded
        self._result = result_of(await session.state(chat))

    def start(
        self,
        goal: str,
        *,
        workspace: str | Path | None = None,
        name: str = "",
        tokens: bool = False,
        ask: bool = False,
    ) -> Run:
        """Build the goal in the background.

        With `tokens`, the run also yields what members write while they write it; with `ask`, it yields the team's
        questions, for `run.answer`.
        """
        session = self.session

        async def perform(run: Run) -> None:
            person = self._person(run, ask)
            chat = await session.start(goal, self._spec(person is not None), folder_of(workspace), name)
            run.begin(chat, await session.log(chat))
            await run.follow(partial(session.conduct, chat, self.sandbox, person))

        return Run(session, perform, tokens)

    def resume(
        self, chat: str, message: str = "", *, action: str = "", tokens: bool = False, ask: bool = False
    ) -> Run:
        """Go on with a chat: with a message, or as it is. One that a budget ended gets as much again.

        With the `action` of a question the message answers only that one: NeedsPerson if another is open by now.
        """
        session = self.session

        async def perform(run: Run) -> None:
            found = await session.find(chat)
            state = await session.state(found)
            check_action(state, action)
            for event in read_answer(state, question(state), message) if message else ():
                await session.append(found, event)
            if state.ended is not None and (message or not is_finished(state)):
                await session.reopen(found, as_much_again(state, state.team.budget))
            run.begin(found)
            await run.follow(partial(session.conduct, found, self.sandbox, self._person(run, ask)))

        return Run(session, perform, tokens)

    @property
    def session(self) -> Session:
        """What the team works on: its store, blobs and models."""
        if self._session is None:
            raise BadUsage("the team is not open", "use it as: async with Team.load(…) as team")
        return self._session

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where the programs of all runs run. It is opened with the first of them: a talk needs none."""

        async def open_sandbox() -> Sandbox:
            from septet.wiring.sandbox import keep_checked

            opened = await self.session.sandbox(self._options.get("unsafe_local", False))
            await keep_checked(self.session.home)
            return opened

        return SharedSandbox(open_sandbox)

    def _person(self, run: Run, ask: bool) -> Agent | None:
        own = self._options.get("ask")
        return present(own) if own else present(run.ask) if ask else None

    def _spec(self, asks: bool) -> TeamSpec:
        return self.spec if asks else replace(self.spec, approve="auto")


def to_json(recorded: Recorded) -> str:
    """An event in the envelope that `--json` prints, on one line."""
    return encode(recorded).decode()


def from_json(line: str | bytes) -> Recorded:
    """The event back. Raises LogDamaged for what is none."""
    return decode(line)


def check_options(options: TeamOptions) -> None:
    check_agents(options.get("agents", {}))
    ask = options.get("ask")
    if (
        ask is not None
        and not inspect.iscoroutinefunction(ask)
        and not inspect.iscoroutinefunction(type(ask).__call__)
    ):
        raise BadUsage("`ask` is not an async function", "define it with async def")
    for model in (options.get("model", ""), *options.get("models", {}).values()):
        if not isinstance(model, str) and not callable(getattr(model, "answer", None)):
            raise BadUsage(
                f"a {type(model).__name__} is no model", "pass a name, or an object with a method answer"
            )


def with_choices(team: TeamSpec, options: TeamOptions) -> TeamSpec:
    """The team with the options that replace what it says."""
    budget = options.get("budget")
    if isinstance(budget, Budget):
        team = replace(team, budget=budget)
    elif budget:
        try:
            team = replace(
                team, budget=msgspec.convert({**msgspec.to_builtins(team.budget), **budget}, Budget)
            )
        except msgspec.ValidationError as error:
            raise BadUsage(
                f"the budget cannot be read ({error})", "use rounds, tokens, cost, seconds"
            ) from error
    return replace(
        team,
        network=options.get("network", team.network),
        packages=options.get("packages", team.packages),
    )


def model_name(model: str | Model, member: str = "") -> str:
    """The name of a model in the log; a model object is told from others by the member that it is for."""
    if isinstance(model, str):
        return model
    return f"{GIVEN}{type(model).__name__}{f'/{member}' if member else ''}"


def with_members_models(team: TeamSpec, models: Mapping[str, str | Model]) -> TeamSpec:
    known = [member.name for member in thinkers(team)]
    if unknown := next((name for name in models if name not in known), None):
        raise BadUsage(
            f"no member '{unknown}' of the team {team.name} has a model", f"name one of {', '.join(known)}"
        )
    return replace(
        team,
        members=tuple(
            replace(one, model=(model_name(models[one.name], one.name),)) if one.name in models else one
            for one in team.members
        ),
    )


def provider_of(models: Mapping[str, Model]) -> Provider:
    """Model objects by their names as a provider. What they cost only their answers can say."""

    def open_given(endpoint: ModelEndpoint, connections: Connections) -> Model:
        return models[f"{GIVEN}{endpoint.model}"]

    return Provider(name_pattern=f"{GIVEN}NAME", about="a model object of your program", open=open_given)


def folder_of(workspace: str | Path | None) -> Path | None:
    return Path(os.path.abspath(workspace)) if workspace else None  # noqa: PTH100  # no disk is touched
