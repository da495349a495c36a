"""`gauntlet`: teams that misbehave in every known way, driven by the real engine."""

import click


@click.command(epilog="Example: septet gauntlet --mode 3.2")
@click.option("--mode", default="", help="Only teams of this mode: 1.1 … 3.3, or impossible.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many at once (1).")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one for each team.")
def gauntlet(mode: str, jobs: int, as_json: bool) -> int:
    """Scripted teams that misbehave in each of the fourteen known modes, and tasks that nobody can do.

    No key, no network: the words are written beforehand, the programs are really run. The last column shows
    how the same team ends in a plain round robin, where one member's claim is enough. The exit code is 1 if a team does
    not end as it should.
    """
    import anyio
    import msgspec
    from msgspec.structs import replace

    from septet.cli.output import print_text, put_exactly
    from septet.common.temporary import temporary_folder
    from septet.evaluation.gauntlet import ScenarioOutcome, gauntlet_table, load_suite, run_gauntlet
    from septet.settings.home import Home
    from septet.wiring.session import open_session

    suite = load_suite()
    chosen = tuple(one for one in suite.scenarios if mode in ("", one.mode))
    if not chosen:
        raise click.UsageError(f"no team misbehaves as '{mode}'; the modes are 1.1 … 3.3 and impossible")

    async def work() -> list[ScenarioOutcome]:
        with temporary_folder("gauntlet") as folder:
            home = Home(data=folder / "home", config=folder / "config", cache=folder / "cache")
            async with open_session(home) as session:
                sandbox = await session.sandbox()
                return await run_gauntlet(
                    session, sandbox, folder / "teams", replace(suite, scenarios=chosen), jobs
                )

    outcomes = anyio.run(work)
    if as_json:
        put_exactly("".join(msgspec.json.encode(one).decode() + "\n" for one in outcomes))
    else:
        print_text(gauntlet_table(outcomes))
    return 0 if all(one.held for one in outcomes) else 1
