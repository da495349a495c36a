"""`run`, `project`, `plan`, `demo` and `resume`: the commands that run a chat."""

import sys
from pathlib import Path

import click

from septet.cli.completion import chat_names, team_names, version_names
from septet.cli.options import ChatCommand, Folder, Options, action_option, refuse_options, run_options
from septet.common.demo_scripts import demo_names


@click.command(cls=ChatCommand, epilog="Example: septet run 'an analog clock' -C clock --yes")
@click.argument("goal", required=False)
@click.option(
    "-C",
    "workspace",
    type=Folder(),
    help="The folder to build in (the current repository, else a new folder).",
)
@click.option(
    "-t",
    "--team",
    shell_complete=team_names,
    help="A team's name or a team.yaml (iterate; assistant with --data, or for a question about code).",
)
@click.option("-n", "--name", default="", help="The name of the chat.")
@click.option(
    "--plan", type=click.Path(path_type=Path), help="A plan to start with, as `septet plan` prints it."
)
@run_options
def run(
    goal: str | None, workspace: Path | None, team: str | None, name: str, plan: Path | None, options: Options
) -> int:
    """Plan with me, then build GOAL until checks prove that it works.

    GOAL is a description, or - to read it from standard input. Without it, on a terminal, you are asked.
    """
    from septet.cli.start import Start, begin, repository_here, team_for
    from septet.cli.watch import run_chat
    from septet.settings.team_files import check_team, load_team

    if goal == "-" or (goal is None and not sys.stdin.isatty()):
        goal = sys.stdin.read(1 << 21)
    start = Start(workspace or repository_here(options.output.quiet), name, plan)
    chosen = check_team(load_team(team or team_for(goal or "", start, options.files)))
    return run_chat(begin(goal, chosen, start, options), options)


@click.command(cls=ChatCommand, epilog="Example: septet --project clock 'an analog clock' -C clock --yes")
@click.argument("name", shell_complete=chat_names)
@click.argument("goal", required=False)
@click.option("-C", "workspace", type=Folder(), help="The folder to build in.")
@click.option(
    "-t",
    "--team",
    default="iterate",
    shell_complete=team_names,
    help="A team's name or a team.yaml (iterate).",
)
@run_options
def project(name: str, goal: str | None, workspace: Path | None, team: str, options: Options) -> int:
    """Continue the project NAME, or start it if there is none; `--project NAME` does the same.

    For scripts: the same line starts it, resumes it after a crash, and does nothing once it is done. A changed
    GOAL is sent to the team as a message.
    """
    from septet.cli.start import Start, begin_or_resume
    from septet.cli.watch import run_chat
    from septet.settings.team_files import check_team, load_team

    if goal == "-":
        goal = sys.stdin.read(1 << 21)
    return run_chat(
        begin_or_resume(goal, check_team(load_team(team)), Start(workspace, name), options), options
    )


@click.command(cls=ChatCommand, epilog="Example: septet plan 'an analog clock' > plan.txt")
@click.argument("goal")
@click.option("-n", "--name", default="", help="The name of the chat.")
@run_options
def plan(goal: str, name: str, options: Options) -> int:
    """Agree on a plan only; the approved plan goes to stdout, ready for `septet run --plan`."""
    from septet.cli.start import Start, begin
    from septet.cli.watch import run_chat
    from septet.ways.table import TEAMS

    return run_chat(begin(goal, TEAMS["plan"], Start(name=name), options), options)


@click.command(cls=ChatCommand, epilog="Example: septet demo clock")
@click.argument("which", type=click.Choice(demo_names()), default="clock")
@click.option("-C", "workspace", type=Folder(), help="The folder to build in.")
@run_options
def demo(which: str, workspace: Path | None, options: Options) -> int:
    """Watch a team at work, with no key and no network.

    The members' answers were written beforehand; the code, tests and pictures are really run and made here.

    \b
    clock, bars   a team plans, codes, runs, reviews and fixes
    hello         an autocoder finds a broken project: is the code wrong, or the test?
    midi          an autocoder writes music from an empty folder
    pull-request  a manager, a coder and a runner in a group chat
    ctr           a proxy and its assistant answer questions about a log of ad impressions
    """
    from septet.cli.start import begin_demo
    from septet.cli.watch import run_chat

    refuse_options("a demo has its own answers and data", "model", "data", "dictionary", "fetch")

    return run_chat(begin_demo(which, workspace, options), options)


@click.command(cls=ChatCommand, epilog="Example: septet resume analog-clock 'sounds good'")
@click.argument("name", required=False, shell_complete=chat_names)
@click.argument("message", required=False)
@click.option("--last", is_flag=True, help="The most recently changed chat.")
@click.option(
    "--from",
    "version",
    metavar="VERSION",
    shell_complete=version_names,
    help="Continue from an older version, which becomes the newest: v2.",
)
@action_option
@run_options
def resume(
    name: str | None, message: str | None, last: bool, version: str | None, action: str, options: Options
) -> int:
    """Continue a chat exactly where it stopped: after an end, a limit, a crash or a kill.

    Without NAME the unfinished chats are offered. NAME may be the beginning of a name. MESSAGE answers what the
    chat waits for, or steers the next turn.
    """
    from septet.cli.start import resume_chat
    from septet.cli.watch import run_chat

    refuse_options(
        "a chat keeps the models and data that it started with", "model", "data", "dictionary", "fetch"
    )
    if last and name and message is None:
        name, message = None, name
    return run_chat(resume_chat("" if last else name, message, options, version, action), options)
