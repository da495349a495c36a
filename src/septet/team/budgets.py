"""Budgets of a chat and of its members: no model is asked for an answer that would exceed one. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal

from septet.domain.messages import Purse, Request, Usage, estimate_usage
from septet.domain.state import Spending, State
from septet.domain.teams import Allowance, Budget
from septet.team.floor import End, Floor, Move

BudgetKind = Literal["token", "cost", "time"]


def within_budget(budget: Budget, floor: Floor) -> Floor:
    """End when tokens, cost or time are used up, or would be by the next turn: the chat's or the member's."""

    def next_move(state: State) -> Move:
        if state.spending.budget_reached is not None:
            return End(reason="bound", detail=state.spending.budget_reached.why)
        move = floor(state)
        if isinstance(move, End):
            return move
        why = exceeded_budget(state, budget, move.speaker)
        return End(reason="bound", detail=why) if why else move

    return next_move


def exceeded_budget(state: State, budget: Budget, speaker: str, more: Spending | None = None) -> str:
    """Say which budget one more answer of the speaker would exceed, by default a usual one; empty if none."""
    whole, own = whole_allowance(budget), allowance(state, speaker)
    if whole == own == Allowance():
        return ""
    more = more or usual_spending(state, speaker)
    total = Spending(
        usage=state.spending.total.usage, cost=state.spending.total.cost, seconds=state.spending.seconds
    )
    used = own_spending(state, speaker)
    member = f"the {speaker}'s"
    return limit_reached(whole, total, more, ("the", member)) or limit_reached(
        own, used, more, (member, "its")
    )


def expected_spending(state: State, speaker: str, request: Request) -> Spending:
    """Estimate the spending of the next answer: by earlier answers, or by the request if it is the first."""
    if spent_before(state, speaker).answers:
        return usual_spending(state, speaker)
    return Spending(answers=1, usage=estimate_usage(request))


def cost_limit_for(state: State, speaker: str) -> Purse | None:
    """The cost limit of a first answer, which only the model's price can check; later ones are estimated as usual."""
    if spent_before(state, speaker).answers:
        return None
    left = [
        ("the", state.budget.cost, state.spending.total.cost),
        (f"the {speaker}'s", allowance(state, speaker).cost, own_spending(state, speaker).cost),
    ]
    return min(purses(left, "cost"), key=lambda purse: purse.remaining, default=None)


def time_limit_for(state: State, speaker: str) -> Purse | None:
    """The time limit of the speaker's turn in seconds, including waiting; None if there is no limit."""
    left = [
        ("the", state.budget.seconds, state.spending.seconds),
        (f"the {speaker}'s", allowance(state, speaker).seconds, own_spending(state, speaker).seconds),
    ]
    return min(purses(left, "time"), key=lambda purse: purse.remaining, default=None)


def purses(left: Iterable[tuple[str, float | None, float]], kind: BudgetKind) -> Iterator[Purse]:
    """The remaining amount of each limit; `left` has whose it is, the limit and the used amount."""
    for whose, limit, used in left:
        if limit is not None:
            yield Purse(remaining=limit - used, limit=f"{whose} {kind} budget of {amount_text(limit, kind)}")


def limit_reached(limits: Allowance, used: Spending, more: Spending, names: tuple[str, str]) -> str:
    """Say which limit is reached, or would be by `more`; `names` are the owners of the limit and of the turn."""
    whose, turn = names
    measured: list[tuple[float | None, float, float, BudgetKind]] = [
        (limits.tokens, used.usage.total, more.usage.total, "token"),
        (limits.cost, used.cost, more.cost, "cost"),
        (limits.seconds, used.seconds, more.seconds, "time"),
    ]
    for limit, amount, extra, kind in measured:
        if limit is None or amount + extra <= limit > amount:
            continue
        if amount >= limit:
            return f"{whose} {kind} budget of {amount_text(limit, kind)} is used up"
        there = f"{amount_text(amount, kind)} of {amount_text(limit, kind)} used"
        needed = f"about {amount_text(extra, kind)} needed"
        return f"{whose} {kind} budget is too small for {turn} next turn: {there}, {needed}"
    return ""


def amount_text(amount: float, kind: BudgetKind) -> str:
    match kind:
        case "token":
            return f"{amount:,.0f}"
        case "cost":
            return f"${amount:.6g}"
        case "time":
            return f"{amount:.6g} s"


def whole_allowance(budget: Budget) -> Allowance:
    return Allowance(tokens=budget.tokens, cost=budget.cost, seconds=budget.seconds)


def allowance(state: State, speaker: str) -> Allowance:
    """The member's own budget; unlimited if the speaker is not a member."""
    found = (one.budget for one in state.team.members if speaker in (one.name, one.role))
    return next(found, Allowance())


def own_spending(state: State, speaker: str) -> Spending:
    """What a member has used of its own budget; reopening the chat renews the budget."""
    whole, before = spent_before(state, speaker), state.spending.at_opening.get(speaker, Spending())
    return Spending(
        usage=Usage(
            prompt=whole.usage.prompt - before.usage.prompt,
            completion=whole.usage.completion - before.usage.completion,
        ),
        cost=whole.cost - before.cost,
        seconds=whole.seconds - before.seconds,
    )


def spent_before(state: State, speaker: str) -> Spending:
    return state.spending.members.get(speaker, Spending())


def usual_spending(state: State, speaker: str) -> Spending:
    """Estimate one more answer of the speaker: its newest or its average, whichever is more.

    Zero if the speaker has not answered yet.
    """
    past, newest = spent_before(state, speaker), state.spending.latest_answers.get(speaker, Spending())
    if not past.answers:
        return Spending()
    usage = Usage(
        prompt=max(newest.usage.prompt, past.usage.prompt // past.answers),
        completion=max(newest.usage.completion, past.usage.completion // past.answers),
    )
    return Spending(
        answers=1, usage=usage, cost=max(newest.cost, past.cost / past.answers), seconds=newest.seconds
    )
