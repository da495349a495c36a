"""Push notifications of A2A: the addresses that want them, in a file that only the person may read, and sending."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

import aiohttp
import anyio
import msgspec
from a2a.types.a2a_pb2 import TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskStatusUpdateEvent
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import to_stream_response
from a2a.utils.push_url_validator import validate_push_notification_url
from google.protobuf.json_format import MessageToDict, ParseDict

from septet.common.values import Value
from septet.settings.home import write_private

SECONDS = 10.0
TRIES = 3
PAUSE = 0.5
MAX_CONFIGS = 20
"""Of one task."""
Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class KeptConfig(Value):
    """A configuration in the file. If it is `local`, its client was on this machine, and so may its address be."""

    task: str
    config: Mapping[str, object]
    local: bool = False


async def checked_address(url: str, local: bool) -> None:
    """Raise InvalidParamsError for an address to which nothing is sent: others may not make us call services here."""
    parts = urlsplit(url)
    is_plain = parts.scheme in ("http", "https") and parts.hostname and len(url) < 2000
    if not is_plain or not (local or await validate_push_notification_url(url)):
        raise InvalidParamsError("the address of a push notification must be a public http(s) address")


class PushConfigs:
    """The configurations of all tasks; each change is on the disk before it is confirmed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[tuple[str, str], KeptConfig] = {}
        with suppress(OSError, msgspec.MsgspecError):
            read = msgspec.json.decode(path.read_bytes(), type=list[KeptConfig])
            self._kept = {(one.task, str(one.config.get("id"))): one for one in read}

    def tasks(self) -> Sequence[str]:
        return list(dict.fromkeys(task for task, _ in self._kept))

    def of(self, task: str) -> dict[str, TaskPushNotificationConfig]:
        return {one: read_config(kept) for (name, one), kept in self._kept.items() if name == task}

    def put(self, config: TaskPushNotificationConfig, local: bool) -> TaskPushNotificationConfig:
        config.id = config.id or token_hex(8)
        key = (config.task_id, config.id)
        if key not in self._kept and len(self.of(config.task_id)) >= MAX_CONFIGS:
            raise InvalidParamsError(f"a task has at most {MAX_CONFIGS} push configurations")
        self._kept[key] = KeptConfig(task=config.task_id, config=MessageToDict(config), local=local)
        self._write()
        return config

    def remove(self, task: str, config: str) -> None:
        if self._kept.pop((task, config), None) is not None:
            self._write()

    def forget(self, task: str) -> None:
        """The task is over, or is no more: nothing will be sent."""
        for config in self.of(task):
            self.remove(task, config)

    def _write(self) -> None:
        write_private(self._path, msgspec.json.encode(list(self._kept.values())))

    async def send(self, task: str, update: Update) -> None:
        """Send to every address in turn, so that each gets the updates in order; one that fails is tried again."""
        content = MessageToDict(to_stream_response(update))
        for (name, _), kept in list(self._kept.items()):
            if name == task:
                await post(kept, content)


def read_config(kept: KeptConfig) -> TaskPushNotificationConfig:
    return ParseDict(dict(kept.config), TaskPushNotificationConfig(), ignore_unknown_fields=True)


async def post(kept: KeptConfig, content: object) -> bool:
    """Whether the address took it. A redirection is not followed: it could lead to a service of this machine."""
    config = read_config(kept)
    headers = {"Content-Type": "application/json"}
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    if config.authentication.scheme and config.authentication.credentials:
        headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    for tried in range(TRIES):
        with suppress(aiohttp.ClientError, TimeoutError, ValueError, InvalidParamsError):
            await checked_address(config.url, kept.local)
            async with (
                aiohttp.ClientSession(timeout=timeout) as client,
                client.post(
                    config.url, data=msgspec.json.encode(content), headers=headers, allow_redirects=False
                ) as answer,
            ):
                if answer.status < 500:
                    return answer.status < 300
        await anyio.sleep(PAUSE * 2**tried)
    return False
