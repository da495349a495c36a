"""Agents that several processes may serve: who serves which, from where on, and what is left to do after a crash.

The agents of a type are divided into shards by their keys. The first process that has work for a shard claims it: it
appends a claim to the same log as the messages, and the server lets one process win. From then on the shard's agents
live in that process, and what they send counts only while the claim is the newest: a process that was replaced without
noticing has no effect any more. Claims come in order with the messages, so that everybody agrees on them.

Each process keeps a record: how far it has read, and which messages are still at work. When its record stands still, or
says that it has stopped, others claim its shards and read again from there.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from itertools import count
from secrets import token_hex
from typing import Protocol

import msgspec
import nats.errors
from msgspec.structs import replace
from nats.aio.msg import Msg

from septet.cluster.connection import retry_forever
from septet.cluster.message_log import Fence, MessageLog, Reader
from septet.cluster.runtime_records import RuntimeRecord, RuntimeRecords
from septet.cluster.stream import StaleSequence
from septet.common.text import decode_token, encode_token
from septet.common.values import Value
from septet.errors import SeptetError, Unreachable

BEAT = 1.0
"""Seconds between two looks at others."""
READ_TO_END = 5
"""Beats between two looks whether the log is read to its end."""
MAX_AT_WORK = 2000
"""Messages at work from which on more are read slowly."""
SERVERS, CLAIMS = "server", "claim"
"""First tokens below the root: who serves a type, and who a shard."""
MAX_SUBJECTS = 100
"""From this many types on, the claims of all types are read."""


class Claim(Value):
    """A process serves a shard: its messages after `start`, and those in `redo`."""

    runtime: str
    start: int
    redo: tuple[int, ...] = ()


CLAIM = msgspec.json.Decoder(Claim)
RUNTIME = re.compile("[0-9a-f]{12}")
NOBODY = "?"
"""Who has made a claim that is none: everybody may claim the shard anew."""


class Work(Protocol):
    """What one message means for the agents of one shard."""

    @property
    def shard(self) -> str:
        """The agents' type, and the shard's name among those of the type: `writer/3`."""
        ...

    def start(self, fence: Fence, finish: Callable[[], None]) -> None: ...


Route = Callable[[str, Msg], Iterable[Work]]
"""What a message means: the first token of its subject below the root, and the message."""


class Shard:
    """Some agents of a type, and what this process knows of them."""

    def __init__(self, name: str, start: int) -> None:
        self.name = name
        self.claim = Claim(runtime="", start=start)
        self.claim_seq = 0
        self.start = start
        """Messages up to this one are done with, or at work."""
        self.redo: set[int] = set()
        self.at_work: Counter[int] = Counter()
        self.waiting: list[tuple[int, Work]] = []
        """What came while nobody had claimed the shard."""

    def is_new(self, seq: int) -> bool:
        return seq > self.start or seq in self.redo

    def outstanding(self) -> tuple[int, ...]:
        return tuple(sorted({*self.at_work, *self.redo, *(seq for seq, _ in self.waiting)}))

    def remaining(self, record: RuntimeRecord | None) -> Claim:
        """What the process that serves it has left to do, by its record: the claim of a successor."""
        if record is None or record.claimed < self.claim_seq:
            return self.claim
        start = max(self.claim.start, record.received, record.starts.get(self.name, 0))
        return replace(self.claim, start=start, redo=record.at_work.get(self.name, ()))

    def set_claim(self, claim: Claim, seq: int) -> None:
        self.claim, self.claim_seq = claim, seq
        self.start, self.redo = claim.start, set(claim.redo)
        self.at_work.clear()
        self.waiting.clear()


class Shards:
    """The shards that this process serves, reads for and takes over."""

    def __init__(self, log: MessageLog, records: MessageLog, root: str, route: Route) -> None:
        self.id = token_hex(6)
        self._log = log
        self._root = root
        self._route = route
        self._shards: dict[str, Shard] = {}
        self._busy: dict[str, Shard] = {}
        """Those with something outstanding, and some without."""
        self._bases: dict[str, int] = {}
        """The types that are served, with the sequence up to which nothing is left to do for unclaimed shards."""
        self._unread: list[int] = []
        """From where on types that have joined are still to be read."""
        self._servers: dict[str, set[str]] = {}
        """The other processes that have served a type."""
        self._claimed = 0
        self._read_to = 0
        """How far has been read before reading again."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._moving = asyncio.Lock()
        self._records = RuntimeRecords(records, root, self.id, self._record)
        self.at_work = 0
        self.reader = Reader(log, self._receive, lambda: self.at_work > MAX_AT_WORK)
        self.on_claim: Callable[[str, str], None] = lambda shard, before: None
        """Called with a shard that this process now serves, and who served it before."""
        self.on_loss: Callable[[str], None] = lambda shard: None
        """Called with a shard that another process serves now."""

    async def open(self) -> None:
        self.reader.position = await retry_forever(self._log.last_sequence)
        await self._records.open()
        await self.reader.open()
        self._spawn(self._beat())

    async def join(self, types: Iterable[str], history: float = 0.0) -> None:
        """Let these types be known: from now on their messages are kept for whoever serves them."""
        async with self._moving:
            new = [agent_type for agent_type in types if agent_type not in self._bases]
            bases = await asyncio.gather(*(self._join(agent_type, history) for agent_type in new))
            self._bases |= dict(zip(new, bases, strict=True))
            self._unread += bases

    async def serve(self, types: Iterable[str], subjects: Sequence[str], history: float = 0.0) -> None:
        """Serve agents of these types too, and read these subjects from now on, besides claims of these types."""
        await self.join(types, history)
        async with self._moving:
            self._read_from(min([self.reader.position, *self._unread]), [*subjects, *self._own_subjects()])
            self._unread.clear()
            await retry_forever(self._take_over)
        await self.reader.settle()

    async def _join(self, agent_type: str, history: float) -> int:
        """Say that this process serves the type, and learn who else does; returns from where on it is to be read."""
        servers = f"{self._root}.{SERVERS}.{encode_token(agent_type)}"
        start = await retry_forever(lambda: self._log.sequence_before(history)) if history else 0
        try:
            first, _ = await self._log.append(f"{servers}.{self.id}", b"", fence=Fence(f"{servers}.*", 0))
            return min(start, first) if history else first
        except StaleSequence:
            await self._log.append(f"{servers}.{self.id}", b"")
        claims = f"{self._root}.{CLAIMS}.{encode_token(agent_type)}.*"
        for stored in await retry_forever(lambda: self._log.newest_of_each(claims)):
            self._learn(self._shard(shard_of(stored.subject), 0), stored.body, stored.seq)
        joined = await retry_forever(lambda: self._log.newest_of_each(f"{servers}.*"))
        servers_before = {stored.subject.rsplit(".", 1)[1] for stored in joined} - {self.id}
        self._servers[agent_type] = servers_before
        bases = [await self._base(runtime, agent_type) for runtime in servers_before]
        return max([min(stored.seq for stored in joined), *bases])

    async def _base(self, runtime: str, agent_type: str) -> int:
        """Up to where nothing is left to do for shards of the type that nobody has claimed, by a process's record."""
        record = await retry_forever(lambda: self._records.find(runtime))
        if record is None:
            return 0
        unclaimed = [
            seq
            for name, sequences in record.at_work.items()
            if type_of(name) == agent_type and name not in self._shards
            for seq in sequences
        ]
        return min([record.received, *(seq - 1 for seq in unclaimed)])

    def _read_from(
        self, target: int, subjects: Sequence[str] | None = None, but: Sequence[Shard] = ()
    ) -> None:
        """Read again from `target`; what has been read already is new only to the shards in `but`."""
        position = self.reader.position
        self._read_to = max(self._read_to, position)
        for shard in self._shards.values():
            if shard not in but:
                shard.start = max(shard.start, position)
        self.reader.read(min(target, position), subjects)

    def _own_subjects(self) -> list[str]:
        """Who serves the types and their shards; of all types, where there are many."""
        types = ["*"] if len(self._bases) > MAX_SUBJECTS else map(encode_token, self._bases)
        return [f"{self._root}.{kind}.{one}.*" for one in types for kind in (CLAIMS, SERVERS)]

    @property
    def is_claiming(self) -> bool:
        """Whether messages wait for a shard that is being claimed."""
        return any(shard.waiting for shard in self._busy.values())

    def is_shared(self, agent_type: str) -> bool:
        """Whether other processes serve the type, or have served it."""
        return bool(self._servers.get(agent_type))

    def owns(self, name: str) -> bool:
        """Whether this process serves the shard."""
        shard = self._shards.get(name)
        return shard is not None and shard.claim.runtime == self.id

    def _shard(self, name: str, start: int) -> Shard:
        return self._shards.get(name) or self._shards.setdefault(name, Shard(name, start))

    def _receive(self, seq: int, message: Msg) -> None:
        kind = message.subject[len(self._root) + 1 :].partition(".")[0]
        if kind == CLAIMS:
            name = shard_of(message.subject)
            if type_of(name) in self._bases:
                self._learn(self._shard(name, seq), message.data, seq)
            return
        if kind == SERVERS:
            agent_type, runtime = shard_of(message.subject).split("/")
            self._servers.setdefault(agent_type, set()).update({runtime} - {self.id})
            return
        work: dict[str, list[Work]] = {}
        for one in self._route(kind, message):
            work.setdefault(one.shard, []).append(one)
        for name, parts in work.items():
            self._take(seq, name, parts)

    def _take(self, seq: int, name: str, work: Sequence[Work]) -> None:
        shard = self._shards.get(name) or self._shard(name, self._bases[type_of(name)])
        if not shard.is_new(seq):
            return
        if shard.claim.runtime == self.id:
            shard.redo.discard(seq)
            self._begin(shard, seq, work)
        elif not shard.claim.runtime:
            if not shard.waiting:
                self._spawn(self._claim_first(shard, seq, shard.claim_seq))
            shard.waiting += [(seq, one) for one in work]
            self._busy[name] = shard

    def _begin(self, shard: Shard, seq: int, work: Sequence[Work]) -> None:
        fence = Fence(self._claim_subject(shard.name), shard.claim_seq)
        self._busy[shard.name] = shard

        def finish() -> None:
            self.at_work -= 1
            if shard.claim_seq == fence.sequence:
                shard.at_work[seq] -= 1
                if not shard.at_work[seq]:
                    del shard.at_work[seq]
                    self._records.write()

        for one in work:
            self.at_work += 1
            shard.at_work[seq] += 1
            one.start(fence, finish)

    async def _claim_first(self, shard: Shard, seq: int, after: int) -> None:
        """Claim a shard that nobody has served `after` this claim: another's may be read before this task begins."""
        claim = Claim(runtime=self.id, start=seq - 1)
        claim_seq = await self._append_claim(shard, claim, after)
        if claim_seq is None:
            newest = await retry_forever(lambda: self._log.newest(self._claim_subject(shard.name)))
            assert newest is not None
            self._learn(shard, newest.body, newest.seq)
            return
        waiting, read_to = list(shard.waiting), max(shard.start, self.reader.position)
        self._set_claim(shard, claim, claim_seq)
        shard.start = read_to
        for seq, one in waiting:
            self._begin(shard, seq, [one])

    async def _append_claim(self, shard: Shard, claim: Claim, after: int) -> int | None:
        subject, body = self._claim_subject(shard.name), msgspec.json.encode(claim)
        while True:
            with suppress(Unreachable):
                return await self._log.replace(subject, body, after)

    def _set_claim(self, shard: Shard, claim: Claim, seq: int) -> None:
        before = shard.claim.runtime
        shard.set_claim(claim, seq)
        self._busy[shard.name] = shard
        self._claimed = max(self._claimed, seq)
        self.on_claim(shard.name, before)

    def _learn(self, shard: Shard, body: bytes, seq: int) -> None:
        """Note who has claimed a shard."""
        claim = self._decode_claim(shard, body)
        if seq <= shard.claim_seq or claim.runtime == self.id:
            return
        is_lost = shard.claim.runtime == self.id
        shard.set_claim(claim, seq)
        if is_lost:
            self.on_loss(shard.name)

    def _decode_claim(self, shard: Shard, body: bytes) -> Claim:
        with suppress(msgspec.MsgspecError):
            claim = CLAIM.decode(body)
            if RUNTIME.fullmatch(claim.runtime):
                return claim
        if shard.claim.runtime != self.id:
            return replace(shard.claim, runtime=NOBODY)
        start = max(shard.start, self.reader.position)
        return Claim(runtime=NOBODY, start=start, redo=shard.outstanding())

    async def _take_over(self) -> None:
        """Claim the shards of those who are gone, and read again what they have left."""
        owners = {shard.claim.runtime for shard in self._shards.values()} - {self.id, ""}
        gone = await self._records.gone(owners)
        theirs = [shard for shard in self._shards.values() if shard.claim.runtime in gone]
        claims = [replace(shard.remaining(gone[shard.claim.runtime]), runtime=self.id) for shard in theirs]
        known = [shard.claim_seq for shard in theirs]
        sequences = await asyncio.gather(*map(self._append_claim, theirs, claims, known))
        won = [
            (shard, claim, seq)
            for shard, claim, seq in zip(theirs, claims, sequences, strict=True)
            if seq is not None and seq > shard.claim_seq
        ]
        starts = [min([claim.start, *(seq - 1 for seq in claim.redo)]) for _, claim, _ in won]
        if starts and min(starts) < self.reader.position:
            self._read_from(min(starts), but=[shard for shard, _, _ in won])
        for shard, claim, seq in won:
            self._set_claim(shard, claim, seq)

    async def _beat(self) -> None:
        for number in count(1):
            await asyncio.sleep(BEAT)
            try:
                self.reader.check()
                if number % READ_TO_END == 0 and not self.at_work:
                    await self.reader.is_at_end()
                async with self._moving:
                    await self._take_over()
            except (nats.errors.Error, SeptetError):
                continue
            self._records.write()

    def _record(self) -> RuntimeRecord:
        position = self.reader.position
        self._busy = {name: shard for name, shard in self._busy.items() if shard.outstanding()}
        mine = [shard for shard in self._busy.values() if shard.claim.runtime in (self.id, "")]
        ahead = self._shards.values() if position < self._read_to else ()
        return RuntimeRecord(
            runtime=self.id,
            received=position,
            claimed=self._claimed,
            starts={shard.name: shard.start for shard in ahead if shard.start > position},
            at_work={shard.name: shard.outstanding() for shard in mine},
        )

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _claim_subject(self, name: str) -> str:
        agent_type, _, number = name.rpartition("/")
        return f"{self._root}.{CLAIMS}.{encode_token(agent_type)}.{encode_token(number)}"

    async def close(self) -> None:
        """Stop; others take over what is left."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.reader.close()
        with suppress(SeptetError):
            await self._records.close()


def type_of(shard: str) -> str:
    return shard.rpartition("/")[0]


def shard_of(subject: str) -> str:
    agent_type, number = subject.split(".")[-2:]
    return f"{decode_token(agent_type)}/{decode_token(number)}"
