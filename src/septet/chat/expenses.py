"""What a chat and its members have used, and of how much: the same words live, in `show` and in exports."""

from septet.domain.counts import counted
from septet.domain.state import Spending, State
from septet.domain.teams import Allowance
from septet.team.budgets import allowance, own_spending


def spent(state: State) -> str:
    """The whole chat: answers, and what they cost where that is known."""
    limits = Allowance(tokens=state.budget.tokens, cost=state.budget.cost)
    return " · ".join([counted(state.spent.answers, "answer"), *measures(state.spent, limits)])


def spent_by_member(state: State) -> list[str]:
    """A line for each member whose answers were counted, with its own budget."""
    known = {name: one for name, one in state.spending.items() if one.usage.total}
    width = max(map(len, known), default=0)
    return [
        f"  {name:<{width}}  {counted(one.answers, 'answer')} · {' · '.join(measures(one, allowance(state, name)))}"
        for name, one in known.items()
    ]


def spent_now(state: State) -> str:
    """What a watcher sees of the member at work: how far it is into its own budget."""
    speaker = state.turn.speaker if state.turn else ""
    limits, used = allowance(state, speaker), own_spending(state, speaker)
    figures = [
        f"{used.usage.total}/{limits.tokens} tokens" if limits.tokens is not None else "",
        f"${used.cost:.4f}/{limits.cost:g}" if limits.cost is not None else "",
        f"{used.seconds:.0f}/{limits.seconds:g} s" if limits.seconds is not None else "",
    ]
    shown = " ".join(filter(None, figures))
    return f"{speaker} {shown}" if shown else ""


def time_used(state: State, meanwhile: float = 0.0) -> str:
    """Seconds that models and programs took, and of how many; `meanwhile` is what is not in the log yet."""
    limit = f"/{state.budget.seconds:g}" if state.budget.seconds is not None else ""
    return f"{state.seconds + meanwhile:.0f}{limit} s"


def measures(used: Spending, limits: Allowance) -> list[str]:
    usage = used.usage
    if not usage.total:
        return []
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    tokens = f" of {limits.tokens}" if limits.tokens is not None else ""
    cost = f" of {limits.cost:g}" if limits.cost is not None else ""
    about = "about " if usage.estimated else ""
    return [f"{about}{usage.prompt} + {usage.completion} tokens{cached}{tokens}", f"${used.cost:.4f}{cost}"]
