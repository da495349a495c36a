"""The composition root: the only module that connects ports to their adapters."""

import dataclasses
import os
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec.structs import replace

from septet.agents.budget_guard import with_deadline, within_budgets
from septet.agents.person import (
    AnsweredElsewhere,
    absent_person,
    agreeing_to_plans,
    always_agree,
    with_chat_released,
)
from septet.chat.artefact_files import ArtefactFiles
from septet.chat.index_file import IndexFile
from septet.chat.names import checked_name, new_names
from septet.common.temporary import temporary_folder
from septet.domain.base import SecretRules
from septet.domain.events import (
    BaseSurveyed,
    ChatContinued,
    ChatHalted,
    ChatStarted,
    DataDescribed,
    Delivered,
    EnvironmentProbed,
    Event,
    FactsChanged,
    PlanProposed,
    Recorded,
)
from septet.domain.facts import facts_named
from septet.domain.plans import Plan
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import (
    BadConfig,
    BadUsage,
    Conflict,
    Interrupted,
    NeedsPerson,
    NoSandbox,
    SeptetError,
    StoreFailed,
    Unreachable,
)
from septet.models.providers.provider import Provider
from septet.models.wrappers.recording import DebugTap
from septet.ports import Agent, Blobs, Bus, ChatCatalog, EventStore, Examples, Model, Sandbox
from septet.runtime.bus import MemoryBus
from septet.runtime.deployment import Deployment
from septet.runtime.log import Listen, Log, stream
from septet.settings.home import TELEMETRY_VARIABLE, Home, find_home, trusted_folders
from septet.stores.blobs import FolderBlobs
from septet.stores.chat_locks import ChatLocks
from septet.stores.sqlite import open_store
from septet.ways.endings import is_finished
from septet.ways.table import TEAMS, floor_for, thinkers, way_of
from septet.ways.way import MemberContext
from septet.wiring.archive import Archive
from septet.wiring.foreign_agents import foreign_agent
from septet.wiring.models import Models, absolute_model_name, adapt_to_model, is_offline
from septet.wiring.shared_sandbox import LazyInstaller, Releasable, SharedSandbox
from septet.workspace.facts_file import Memory
from septet.workspace.files import Workspace

if TYPE_CHECKING:
    from septet.agents.run_context import RunContext
    from septet.tools.registry import Toolbox
    from septet.wiring.delivery import Delivery
    from septet.wiring.mcp import McpServers
    from septet.wiring.telemetry import Telemetry
    from septet.workspace.scratch import Scratch

OWN_MODEL = "own"
"""The model name of a member that uses any model of its own machine."""
LONGEST_GOAL = 100_000
UNRECORDED_ERRORS = (AnsweredElsewhere, NeedsPerson, Conflict, Interrupted, StoreFailed, Unreachable)
"""Errors that stop a conductor but are not about the chat, or cannot be stored."""


class Session(Archive):
    """Everything that outlives a chat: the log, the blobs, the bus, the models."""

    def __init__(
        self,
        home: Home,
        store: EventStore,
        blobs: Blobs,
        bus: Bus,
        models: Models,
        deployment: Deployment | None = None,
    ) -> None:
        super().__init__(home, store, blobs)
        self.deployment = deployment or local_deployment(home)
        """Where members run, and how their turns are made."""
        self.models = models
        self.catalog: ChatCatalog | None = None
        """Renames and deletes chats, if the store can."""
        self.bus = bus
        self.mcp_file: Path | None = None
        """The file that names the MCP servers whose tools members may use."""
        self.resources = ExitStack()
        """What was opened for the session and is closed with it."""
        self.telemetry: Telemetry | None = None
        self.own_agents: Mapping[str, Agent] = {}
        """Agents of this program, by the names that members' models have after `agent:`."""
        self.teams: Mapping[str, TeamSpec] = TEAMS
        self.default_team = "iterate"
        """The default team of a new chat."""
        self.delivers = False
        """Whether finished work is delivered to the person's folder without a question."""
        self.scratches = home.scratches
        """Where the copies of the person's folders are that teams work in."""
        self._environments: dict[str, EnvironmentProbed] = {}
        self.mirror = False
        """Whether workspaces here are copies of folders on other machines."""

    @property
    def is_remote(self) -> bool:
        return self.deployment.remote

    @cached_property
    def mcp_servers(self) -> "McpServers | None":
        """The MCP servers of this machine, which start when a member is given their tools."""
        if self.mcp_file is None:
            return None
        from septet.wiring.mcp import McpServers

        return self.resources.enter_context(closing(McpServers(self.mcp_file)))

    @cached_property
    def examples(self) -> Examples:
        """The exemplar's examples, searched by words and, if an embedding model is set, by meaning."""
        from septet.stores.examples import FullTextExamples, HybridExamples

        by_words, embedder = FullTextExamples(self.home.examples), self.models.embedder()
        return HybridExamples(by_words, embedder, embedder.model) if embedder else by_words

    async def start(
        self,
        goal: str,
        team: TeamSpec,
        workspace: Path | None,
        name: str = "",
        data: Sequence[DataDescribed] = (),
        words: str = "",
    ) -> str:
        """Put a new chat into the log; `conduct` does the rest. `workspace` is an absolute path.

        Without a name it gets one after the words, or the goal, that nobody else has: the log gives a name once.
        """
        goal = checked_goal(goal)
        await self.check_new_chat(name, workspace)
        self.check_models(team)
        self.check_prices(team, team.budget)
        if name:
            return await self.open_chat(name, goal, team, workspace, data)
        for chat in new_names(words or goal):
            with suppress(Conflict):
                return await self.open_chat(chat, goal, team, workspace, data)
        raise AssertionError("there is always another name")

    async def check_new_chat(self, name: str, workspace: Path | None) -> None:
        """Raise an error if a new chat of that name in that folder is impossible."""
        if workspace is not None:
            await Workspace(workspace).check()
        if name and checked_name(name) in {head.chat for head in await self.store.chats()}:
            raise BadUsage(
                f"a chat '{name}' exists already",
                f"{self.command(name)} goes on with it; or take another name",
            )

    async def open_chat(
        self, chat: str, goal: str, team: TeamSpec, workspace: Path | None, data: Sequence[DataDescribed]
    ) -> str:
        folder = workspace or self.home.workspaces / chat
        await Workspace(folder).check()
        paths = tuple(card.path for card in data)
        self.check_unmasking(team, folder)
        memory = Memory(self.home.facts, folder)
        started = ChatStarted(
            goal=goal,
            team=team,
            workspace=str(folder),
            data=paths,
            facts=memory.facts(),
            own_facts=memory.own_facts(),
            existing=await to_thread.run_sync(self.is_existing, folder),
        )
        log = Log(self.store, State(chat=chat))
        for event in (started, *data, *await self.survey(started)):
            await log.record(event)
        return chat

    def check_unmasking(self, team: TeamSpec, folder: Path) -> None:
        """Refuse a team file that comes with the project and opens its secrets, unless the person trusts the folder."""
        if not (team.unmask or team.not_secret) or not team.file:
            return
        from septet.workspace.git import repository_of

        top = repository_of(folder) or folder.resolve()
        trusted = map(Path, trusted_folders(self.home))
        if Path(team.file).resolve().is_relative_to(top) and not any(map(top.is_relative_to, trusted)):
            cause = f"{team.file} comes with the project and may not open its secrets (unmask, not_secret)"
            raise BadConfig(cause, f"read it, then: septet trust {top}; or keep the team file elsewhere")

    async def survey(self, started: ChatStarted) -> list[BaseSurveyed]:
        """The survey of the person's folder; empty for a folder of Septet's own."""
        if not started.existing:
            return []
        from septet.workspace.base import survey_base

        folder, remote = Path(started.workspace), self.deployment.remote
        return [await survey_base(folder, self.blobs, secret_rules(started), with_archive=remote)]

    def is_existing(self, folder: Path) -> bool:
        """Whether the folder is the person's: it is not empty, or is part of a repository."""
        if folder.is_relative_to(self.home.workspaces):
            return False
        from septet.workspace.git import repository_of

        return (folder.is_dir() and any(folder.iterdir())) or repository_of(folder) is not None

    def check_models(self, team: TeamSpec) -> None:
        """Raise an error for an unknown model name before the chat begins. Keys are on the members' machines."""
        self.adopt_client_config(team)
        for member in filter(self.deployment.is_here, thinkers(team)):
            if foreign_agent(member, self.own_agents) is None:
                self.models.open(member.model)

    def check_prices(self, team: TeamSpec, budget: Budget) -> None:
        """A bound on the cost that nobody could hold is said before anything is bought.

        Who thinks with what its own machine has knows the price there.
        """
        for member in thinkers(team):
            bounded = budget.cost is not None or member.budget.cost is not None
            if bounded and budget.price is None and member.model != (OWN_MODEL,):
                self.models.check_price(filter(None, (*member.model, member.stronger)))

    def adopt_client_config(self, team: TeamSpec) -> None:
        """Apply the model settings of a group chat's own file."""
        if team.config:
            self.models.adopt(Path(team.config))

    async def with_models(self, team: TeamSpec, model: str) -> TeamSpec:
        """The team with a model: the named one, one found here, or those of members on other machines."""
        team = team if model else with_own_models(team, self.deployment.is_here)
        if model or all(member.model for member in thinkers(team)):
            return with_model(team, model)
        return with_model(team, (await self.models.choose()).name)

    async def propose(self, chat: str, plan: Plan) -> None:
        """Add the person's own plan, so that the planner need not write one."""
        await self.append(chat, PlanProposed(plan=plan, by="person"))

    def command(self, chat: str) -> str:
        """The command that continues the chat."""
        return self.deployment.command(chat)

    async def append(self, chat: str, event: Event) -> None:
        """Record a message of the person at any moment."""
        for recorded in await self.store.append(chat, event, after=None):
            self.update_facts(await self.state(chat), recorded)

    def update_facts(self, state: State, recorded: Recorded) -> None:
        """Write new facts into the project's facts file, with source and date."""
        if isinstance(recorded.event, FactsChanged):
            day = datetime.fromtimestamp(recorded.at, UTC).date()
            memory = Memory(self.home.facts, Path(state.workspace))
            memory.change(recorded.event.change, f"{recorded.event.by} in {recorded.chat}, {day}")

    async def learn_from(self, chat: str) -> int:
        """Store examples from a chat that ended as done for the exemplar; returns how many are new."""
        from septet.chat.example_sources import from_chat

        return await self.examples.learn(await from_chat(await self.log(chat), self.blobs))

    async def reopen(self, chat: str, budget: Budget) -> None:
        """Reopen an ended chat with a new budget."""
        state = await self.state(chat)
        self.check_prices(state.team, budget)
        await self.store.append(chat, ChatContinued(budget=budget), after=state.seq)

    async def sandbox(self, unsafe: bool = False) -> Sandbox:
        """Open the sandbox of a chat. Raises NoSandbox before anything else happens."""
        return await self.deployment.open_sandbox(unsafe)

    def check_local(self, sandbox: Sandbox) -> Sandbox:
        """The sandbox for the checks of a delivery. Raises NoSandbox if programs run on other machines."""
        if self.deployment.remote:
            raise NoSandbox("programs of this chat run on other machines", "let its members go on with it")
        return sandbox

    def perform(
        self, chat: str, sandbox: Sandbox, person: Agent | None = None
    ) -> AsyncGenerator[Recorded, None]:
        """Start or resume a chat, and yield every event as it is stored. Raises Conflict if another process runs it."""
        return stream(lambda listen: self.conduct(chat, sandbox, person, listen))

    async def conduct(self, chat: str, sandbox: Sandbox, person: Agent | None, listen: Listen) -> State:
        """Start or resume a chat, pass on each event as it is stored, and return its last state.

        An error that stops it is recorded too.
        """
        self.acquire(chat)
        try:
            async with (
                self.observe(chat, listen) as observed,
                self.deployment.while_conducting(chat, observed) as listener,
            ):
                return await self._perform_or_halt(chat, sandbox, person, listener)
        finally:
            self.deployment.locks.release(chat)

    @asynccontextmanager
    async def observe(self, chat: str, listen: Listen) -> AsyncGenerator[Listen]:
        """The listener with telemetry, if the person wants it."""
        if self.telemetry is None:
            yield listen
            return
        async with self.telemetry.observe(await self.log(chat), listen) as observed:
            yield observed

    async def _perform_or_halt(
        self, chat: str, sandbox: Sandbox, person: Agent | None, listen: Listen
    ) -> State:
        try:
            return await self._perform(chat, sandbox, person, listen)
        except UNRECORDED_ERRORS:
            raise
        except Exception as error:
            for recorded in await self.halt(chat, error):
                await listen(recorded)
            raise

    def acquire(self, chat: str) -> None:
        """Lock the chat while it runs, so that no other process pays for answers to it."""
        self.deployment.locks.acquire(chat)

    async def _perform(self, chat: str, sandbox: Sandbox, person: Agent | None, listen: Listen) -> State:
        async def keep(recorded: Recorded) -> None:
            await artefacts.add_event(log.state, recorded)
            self.update_facts(log.state, recorded)
            await listen(recorded)

        if not isinstance(sandbox, SharedSandbox):  # it does so when it is opened
            from septet.wiring.sandbox import keep_checked

            await keep_checked(self.home)
        events = await self.log(chat)
        log = Log(self.store, fold(events, State(chat=chat)), keep)
        floor = floor_for(log.state.team, log.state.budget)
        scratch = await self.open_scratch(log.state)
        context = self.with_early_baseline(log, self.member_context(log.state, sandbox, person, scratch))
        agents = self.agents(log.state, context)
        artefacts = ArtefactFiles(self.artefact_folders(log.state), self.blobs)
        await artefacts.catch_up(log.state, events)
        await self.probe_environment(log, context)
        delivery = await self.delivery_at_end(log.state, scratch, sandbox)
        try:
            await self.deployment.play(log, floor, agents)
            if delivery and await delivery.reopen_if_broken(log):
                await self.deployment.play(log, floor, agents)
        finally:
            await self._release(
                context, sandbox, scratch.work if scratch else Workspace(Path(log.state.workspace))
            )
        await self._finish(log, delivery)
        return log.state

    async def probe_environment(self, log: Log, context: MemberContext) -> None:
        """Record what programs run with, once, where real models should know it."""
        state = log.state
        told = [one for one in thinkers(state.team) if one.form != "small"]
        real = any(not is_offline(name) for one in told for name in one.model)
        if state.environment or self.is_remote or not (real and way_of(state.team).told_environment):
            return
        from septet.agents.environment import probe_environment

        key = state.workspace if state.existing else ""
        found = self._environments.get(key) or await probe_environment(state, context.run_context)
        if found is not None:
            if not state.existing:  # every new program begins with the same
                self._environments[key] = found
            await log.record(found)

    async def _finish(self, log: Log, delivery: "Delivery | None") -> None:
        if delivery:
            await self.hand_over(log, delivery)
        if log.state.work.version is not None:
            await self.learn_from(log.state.chat)

    async def _release(self, context: MemberContext, sandbox: Sandbox, workspace: Workspace) -> None:
        if context.early_baseline is not None:
            await context.early_baseline.cancel()
        if isinstance(sandbox, Releasable):
            await sandbox.release(str(workspace.root))

    async def delivery_at_end(
        self, state: State, scratch: "Scratch | None", sandbox: Sandbox
    ) -> "Delivery | None":
        """The delivery of a chat that runs; None without a base, or if the folder is on another machine."""

        async def open_sandbox() -> Sandbox:
            return self.check_local(sandbox)

        if scratch is None or not await to_thread.run_sync(scratch.origin.is_dir):
            return None
        from septet.wiring.delivery import Delivery

        return Delivery(state, scratch, self.blobs, open_sandbox)

    async def halt(self, chat: str, error: Exception) -> Sequence[Recorded]:
        """Record the error that stopped the work, without known keys."""
        from septet.chat.redaction import Redaction

        hidden = Redaction(self.models.secrets()).redact_text
        known = isinstance(error, SeptetError)
        cause = error.cause if known else f"internal error ({type(error).__name__}: {error})"
        halted = ChatHalted(cause=hidden(cause), remedy=hidden(error.remedy if known else ""))
        try:
            return await self.store.append(chat, halted, after=None)
        except SeptetError:  # the error itself is what the person must see
            return ()

    def artefact_folders(self, state: State) -> tuple[Workspace, ...]:
        """Write artefact files beside the program if the folder is Septet's own, else under Septet's home."""
        apart = Workspace(self.home.artefacts / state.chat)
        return (apart,) if state.existing else (Workspace(Path(state.workspace)), apart)

    async def hand_over(self, log: Log, delivery: "Delivery") -> None:
        """Deliver finished work if the person need not be asked; complete an interrupted delivery in any case."""
        delivery.state = log.state
        await delivery.finish(log.record)
        agreed = self.delivers or log.state.team.approve == "auto"
        if is_finished(log.state) and agreed and way_of(log.state.team).delivers(log.state):
            done = await delivery.deliver(log.record)
            if done is None or not done.patch:
                await to_thread.run_sync(delivery.scratch.discard)

    async def delivery(self, state: State, unsafe: bool = False) -> "Delivery":
        """The delivery of a chat that is not running now; with `unsafe`, its checks run without a sandbox."""
        from septet.wiring.delivery import Delivery, is_elsewhere
        from septet.wiring.scratches import move_base, open_scratch, scratch_of

        async def open_sandbox() -> Sandbox:
            return self.check_local(await self.sandbox(unsafe))

        if state.base is None:
            cause = f"'{state.chat}' works in {state.workspace} itself"
            raise BadUsage(cause, f"septet restore {state.chat} lists the points to go back to")
        if await to_thread.run_sync(is_elsewhere, state):
            cause = f"the folder {state.workspace} is not on this machine"
            raise BadUsage(cause, "deliver where it is; the work is in the log")
        scratch = await scratch_of(self.scratches, state, self.blobs)
        if not await to_thread.run_sync(scratch.is_ready):
            await open_scratch(self.scratches, state, self.blobs)
        await move_base(state, scratch, self.blobs)
        return Delivery(state, scratch, self.blobs, open_sandbox)

    async def deliver(
        self, chat: str, only: Collection[str] | None = None, *, unsafe: bool = False
    ) -> Delivered | None:
        """Deliver the newest version, or `only` these files of it, to the person's folder, checked or not."""
        with self.holding(chat):
            state = await self.state(chat)
            delivery = await self.delivery(state, unsafe)
            return await delivery.deliver(Log(self.store, state).record, only)

    async def undo(self, chat: str) -> Delivered:
        """Undo the newest delivery."""
        with self.holding(chat):
            state = await self.state(chat)
            return await (await self.delivery(state)).undo(Log(self.store, state).record)

    async def deliver_to_branch(self, chat: str, branch: str) -> Delivered:
        """Commit the newest version to a new branch of the person's repository."""
        from septet.wiring.delivery import deliver_to_branch

        with self.holding(chat):
            state = await self.state(chat)
            delivery = await self.delivery(state)
            return await deliver_to_branch(delivery, branch, f"{state.goal}\n", Log(self.store, state).record)

    @contextmanager
    def holding(self, chat: str) -> Generator[None, None, None]:
        """Lock the chat, so that no other process continues it meanwhile."""
        self.acquire(chat)
        try:
            yield
        finally:
            self.deployment.locks.release(chat)

    async def open_scratch(self, state: State) -> "Scratch | None":
        """The scratch, if the team works on a copy of the person's folder."""
        if state.base is None:
            return None
        from septet.wiring.scratches import open_scratch

        return await open_scratch(self.scratches, state, self.blobs)

    def agents(self, state: State, context: MemberContext) -> dict[str, Agent]:
        """The team's members by name."""
        self.adopt_client_config(state.team)
        here = [member for member in state.team.members if self.deployment.is_here(member)]
        members = {member.name: agent(member, context, self.own_agents) for member in here}
        return {"proxy": context.person, **members}

    def with_early_baseline(self, log: Log, context: MemberContext) -> MemberContext:
        """Run the tests of the untouched base beside the planning; the first model request does not wait for them."""
        if log.state.base is None or self.deployment.remote or not way_of(log.state.team).takes_baseline:
            return context
        from septet.agents.run_context import RunContext
        from septet.agents.runner import EarlyBaseline

        usual = context.run_context
        scratch = usual.scratch
        assert scratch is not None, "a chat with a base has a scratch"
        early = EarlyBaseline(RunContext(scratch, usual.sandbox, self.blobs, MemoryBus(), usual.packages))
        usual.early_result = early.result

        def open_model(names: Sequence[str]) -> Model:
            return DebugTap(context.open_model(names), lambda _: early.start(log.state))

        return dataclasses.replace(context, open_model=open_model, early_baseline=early)

    def person(self, state: State, person: Agent | None) -> Agent:
        """The agent that answers for the person. While it waits, the chat's lock is released."""
        team = state.team
        if team.approve == "auto" and not (team.stepwise or team.consult):
            return always_agree
        asked = (
            with_chat_released(person, self.acquire, self.deployment.locks.release)
            if person
            else absent_person(self.command(state.chat))
        )
        return agreeing_to_plans(asked) if team.approve == "auto" else asked

    def member_context(
        self, state: State, sandbox: Sandbox, person: Agent | None, scratch: "Scratch | None" = None
    ) -> MemberContext:
        """The context of a chat's members."""

        @cache
        def run_context() -> "RunContext":
            from septet.agents.run_context import RunContext

            packages = LazyInstaller(sandbox, self.home, scratch.setup if scratch else None)
            workspace = scratch or Workspace(Path(state.workspace))
            mirror = self.mirror and scratch is None
            return RunContext(workspace, sandbox, self.blobs, self.bus, packages, mirror)

        async def server_tools() -> "Toolbox":
            return await self.mcp_servers.tools() if self.mcp_servers else {}

        @contextmanager
        def trial() -> "Generator[RunContext, None, None]":
            from septet.agents.run_context import RunContext

            with temporary_folder("trial") as folder:
                if scratch is not None:
                    scratch.fill(folder)
                yield RunContext(Workspace(folder), sandbox, self.blobs, MemoryBus(), mirror=True)

        return MemberContext(
            team=state.team,
            open_model=self.models.open,
            bus=self.bus,
            open_run_context=run_context,
            person=self.person(state, person),
            examples=lambda: self.examples,
            server_tools=server_tools,
            scratch_context=trial,
        )


def agent(member: RoleSpec, context: MemberContext, own: Mapping[str, Agent]) -> Agent:
    """The agent of a member, its `own` or its way's, within its budgets; the person has no deadline."""
    way = way_of(context.team)
    acting = foreign_agent(member, own) or way.member(member, context)
    return within_budgets(
        acting if way.is_person(member) else with_deadline(acting, member.name), member.name
    )


def secret_rules(started: ChatStarted) -> SecretRules:
    """What the team file and the person's facts say about files that look like secrets."""
    own = [fact for fact in started.facts if fact in started.own_facts]
    return SecretRules(
        unmasked=(*started.team.unmask, *facts_named("unmask", own)),
        harmless=(*started.team.not_secret, *facts_named("not secret", own)),
    )


def local_deployment(home: Home) -> Deployment:
    """All members run on this machine."""

    async def open_sandbox(unsafe: bool) -> Sandbox:
        from septet.wiring.sandbox import open_job_runner

        return await open_job_runner(home, unsafe)

    return Deployment(locks=ChatLocks(home.locks), open_sandbox=open_sandbox)


@asynccontextmanager
async def open_session(
    home: Home | None = None,
    environment: Mapping[str, str] = os.environ,
    providers: Sequence[Provider] = (),
) -> AsyncGenerator[Session, None]:
    """Open the session of this machine; nothing is written until something happens."""
    home = home or find_home()
    with closing(FolderBlobs(home.blobs)) as blobs:
        async with (
            open_store(home.database) as store,
            session_of(home, store, blobs, environment, providers) as session,
        ):
            session.catalog = store
            session.index = IndexFile(home.index)
            with closing(session.index):
                yield session


@asynccontextmanager
async def open_session_on(
    store: EventStore, home: Home, providers: Sequence[Provider] = ()
) -> AsyncGenerator[Session, None]:
    """A session whose log is in a store of the program. Its blobs are apart: no clean-up knows who names them."""
    with closing(FolderBlobs(home.blobs.with_name("blobs-of-other-stores"))) as blobs:
        async with session_of(home, store, blobs, os.environ, providers) as session:
            yield session


@asynccontextmanager
async def session_of(
    home: Home,
    store: EventStore,
    blobs: FolderBlobs,
    environment: Mapping[str, str],
    providers: Sequence[Provider],
) -> AsyncGenerator[Session, None]:
    async with (
        Models(home, environment, blobs.get, providers=providers) as models,
        telemetry_of(environment) as telemetry,
    ):
        session = Session(home, store, blobs, MemoryBus(), models)
        session.telemetry = telemetry
        session.mcp_file = home.config / "mcp.json"
        with closing(session.deployment.locks), session.resources:
            yield session


@asynccontextmanager
async def telemetry_of(environment: Mapping[str, str]) -> "AsyncGenerator[Telemetry | None]":
    """None unless SEPTET_TELEMETRY is `on`, or `content`, which also sends what is said and done."""
    wanted = environment.get(TELEMETRY_VARIABLE, "").strip() or "off"
    if wanted == "off":
        yield None
        return
    if wanted not in ("on", "content"):
        raise BadConfig(f"{TELEMETRY_VARIABLE} is '{wanted[:40]}'", "set it to on, content or off")
    try:
        from septet.wiring.telemetry import open_telemetry
    except ImportError as error:
        raise BadConfig(f"{TELEMETRY_VARIABLE} needs a package", "pip install 'septet[otel]'") from error
    telemetry = open_telemetry(wanted == "content")
    try:
        yield telemetry
    finally:
        await telemetry.close()


def with_own_models(team: TeamSpec, is_here: Callable[[RoleSpec], bool]) -> TeamSpec:
    """Let members on other machines without a model use their machine's own: the conductor needs no keys."""
    own = {one.name for one in thinkers(team) if not (one.model or is_here(one))}
    members = [replace(one, model=(OWN_MODEL,)) if one.name in own else one for one in team.members]
    return replace(team, members=tuple(members))


def with_model(team: TeamSpec, model: str) -> TeamSpec:
    """The team for the log: members that need a model and have none get this one."""
    chosen = {
        member.name: adapt_to_model(
            replace(member, model=tuple(map(absolute_model_name, member.model or (model,))))
        )
        for member in thinkers(team)
    }
    return replace(team, members=tuple(chosen.get(member.name, member) for member in team.members))


def checked_goal(goal: str) -> str:
    goal = goal.strip()
    if not goal:
        raise BadUsage("the goal is empty", "say what you would like, e.g. septet run 'an analog clock'")
    if len(goal) > LONGEST_GOAL:
        cause = f"the goal has {len(goal):,} characters, {LONGEST_GOAL:,} are the most"
        raise BadUsage(cause, "put the details into a file in the workspace and name it")
    if "\0" in goal:
        raise BadUsage("the goal holds a NUL character", "is it really text?")
    if any("\ud800" <= character <= "\udfff" for character in goal):
        raise BadUsage("the goal is not valid Unicode", "is it really text, and in UTF-8?")
    return goal
