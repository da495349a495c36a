"""What a chat may use: the team's own bounds, with what the command line says of them."""

from msgspec.structs import replace

from septet.cli.options import Options
from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.team.limits import rounds_used


def bounded(team: TeamSpec, options: Options) -> TeamSpec:
    """The team within the bounds that the command line sets."""
    given = {
        "rounds": options.rounds,
        "cost": options.max_cost,
        "tokens": options.max_tokens,
        "seconds": options.max_time,
        "price": options.price,
    }
    budget = replace(team.budget, **{name: value for name, value in given.items() if value is not None})
    approve = "auto" if options.yes else "ask" if options.step or options.approve else team.approve
    run, network = options.run_as or team.run, options.network or team.network
    bound = replace(team, budget=budget, approve=approve, stepwise=options.step or team.stepwise)
    return replace(bound, run=run, network=network, packages=options.packages or team.packages)


def more(state: State, options: Options) -> Budget:
    """As much again as the chat had, or what the command line says, on top of what is used up."""
    first = bounded(state.team, options).budget
    used = [rounds_used(state), state.spent.usage.total, state.spent.cost, state.seconds]
    limits = [first.rounds, first.tokens, first.cost, first.seconds]
    rounds, tokens, cost, seconds = (
        None if limit is None else limit + spent for limit, spent in zip(limits, used, strict=True)
    )
    return Budget(
        rounds=None if rounds is None else int(rounds),
        tokens=None if tokens is None else int(tokens),
        cost=cost,
        seconds=seconds,
        price=first.price,
    )
