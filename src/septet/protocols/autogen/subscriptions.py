"""The subscriptions of a runtime: which agents a topic is for."""

from collections.abc import Sequence

from autogen_core import AgentId, Subscription, TopicId

MAX_CACHED = 10_000


class NoSuchSubscription(LookupError, ValueError):
    """AutoGen's documentation names the first, its runtimes raise the second."""


class Subscriptions:
    def __init__(self) -> None:
        self._all: list[Subscription] = []
        self._recipients: dict[str, Sequence[AgentId]] = {}

    @property
    def all(self) -> Sequence[Subscription]:
        return self._all

    def add(self, subscription: Subscription) -> None:
        if any(one == subscription for one in self._all):
            raise ValueError("Subscription already exists")
        self._all.append(subscription)
        self._recipients.clear()

    def remove(self, identity: str) -> None:
        remaining = [one for one in self._all if one.id != identity]
        if len(remaining) == len(self._all):
            raise NoSuchSubscription("Subscription does not exist")
        self._all = remaining
        self._recipients.clear()

    def recipients(self, topic: str) -> Sequence[AgentId]:
        """The agents that get what is published to a topic: each once, however many subscriptions match."""
        found = self._recipients.get(topic)
        if found is None:
            topic_id = TopicId.from_str(topic)
            matching = (one.map_to_agent(topic_id) for one in self._all if one.is_match(topic_id))
            if len(self._recipients) >= MAX_CACHED:
                self._recipients.clear()
            found = self._recipients[topic] = tuple(dict.fromkeys(matching))
        return found
