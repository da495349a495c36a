"""The command line: imports a command when it is called, and reports errors in one line."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from septet.domain.state import State

COMMANDS = {
    "run": ("septet.cli.run:run", "Plan with me, then build until checks prove it works."),
    "plan": ("septet.cli.run:plan", "Agree on a plan only."),
    "project": ("septet.cli.run:project", "Continue a project by its name, or start it."),
    "demo": (
        "septet.cli.run:demo",
        "Watch a team build something: scripted answers, code really run here. No key, no network.",
    ),
    "resume": ("septet.cli.run:resume", "Continue a chat exactly where it stopped."),
    "fork": ("septet.cli.maintenance:fork", "Start a new chat from a copy of another."),
    "menu": ("septet.cli.menu:menu", "Projects: new, continue, edit, run, delete, options."),
    "list": ("septet.cli.chats:list_chats", "List all chats, most recently changed first."),
    "show": ("septet.cli.chats:show", "Show one chat: plan, versions, evidence, cost."),
    "search": ("septet.cli.search:search", "Search the text of all chats."),
    "diff": ("septet.cli.chats:diff", "Show what a chat changes in your folder, or between two versions."),
    "try": ("septet.cli.deliver:try_version", "Run the newest version before it is delivered."),
    "deliver": ("septet.cli.deliver:deliver", "Write what a chat has made into your folder, or to a branch."),
    "undo": ("septet.cli.deliver:undo", "Undo what a chat has delivered."),
    "export": (
        "septet.cli.export:export",
        "Export a chat as Markdown, HTML, text, its raw log, or all in a zip.",
    ),
    "restore": ("septet.cli.maintenance:restore", "Bring a workspace back to a version or a snapshot."),
    "rename": ("septet.cli.maintenance:rename", "Give a chat another name."),
    "rm": ("septet.cli.maintenance:rm", "Delete a chat for good."),
    "backup": (
        "septet.cli.maintenance:backup",
        "Write all chats to a file while others work, or read them back.",
    ),
    "gc": ("septet.cli.maintenance:gc", "Free what no chat uses, and show what everything takes."),
    "host": ("septet.cli.cluster:host", "Start the server for members on many machines."),
    "join": ("septet.cli.cluster:join", "Serve roles for chats that are conducted elsewhere."),
    "conduct": ("septet.cli.cluster:conduct", "Build a goal with the members that have joined a server."),
    "up": ("septet.cli.cluster:up", "Start a host and a member for each role on this machine."),
    "web": ("septet.web.command:web", "Watch and steer chats in a browser."),
    "models": (
        "septet.cli.models:models",
        "List the models; `models get` downloads an embedded one.",
    ),
    "keys": ("septet.cli.models:keys", "Store API keys of providers, readable only by you."),
    "config": (
        "septet.cli.config:config",
        "Show the settings and their sources; print schemas of the files.",
    ),
    "learn": ("septet.cli.learn:learn", "Teach the exemplar from files, folders and chats."),
    "facts": ("septet.cli.facts:facts", "Show or change the facts that every team of a project knows."),
    "mcp": ("septet.cli.mcp:mcp", "Add MCP servers, whose tools the assistants may use."),
    "acp": ("septet.cli.mcp:acp", "Serve an editor: Zed, JetBrains, neovim and other clients of ACP."),
    "ci": ("septet.cli.ci:ci", "Build in a pipeline: no questions, no downloads, reports for machines."),
    "review": ("septet.cli.ci:review", "Review a branch or a patch, and prove findings by failing tests."),
    "eval": ("septet.cli.eval:evaluate", "Evaluate a team on tasks with hidden tests."),
    "replay": ("septet.cli.replay:replay", "Run a recorded chat again offline and compare the logs."),
    "audit": ("septet.cli.audit:audit", "Find the failure modes in a transcript, ours or another program's."),
    "gauntlet": (
        "septet.cli.gauntlet:gauntlet",
        "Run teams that misbehave in every known way, and show how they end.",
    ),
    "exec": ("septet.cli.exec:execute", "Run a file or a command in the sandbox, as the runner does."),
    "completion": ("septet.cli.completion:completion", "Print the completion script for bash, zsh or fish."),
    "doctor": (
        "septet.cli.doctor:doctor",
        "Check what works on this machine, and what to do about the rest.",
    ),
}


ALIASES = ("help", "version", "ls", "status")
"""Other names of commands, which people try first."""
SYNONYMS = {
    "build": "run",
    "new": "run",
    "start": "run",
    "continue": "resume",
    "chats": "list",
    "history": "show",
    "log": "show",
    "logs": "show",
    "delete": "rm",
    "remove": "rm",
    "settings": "config",
    "login": "keys",
}
"""What other programs call our commands; used for suggestions."""
MIN_SIMILARITY = 0.7
"""How similar a word and a command must be (1 is equal) for a suggestion."""


CHAT_COMMANDS = ("run", "plan", "project", "demo", "resume", "conduct")
"""Commands that run a chat: their `--json` ends with its result."""


class Commands(click.Group):
    """Text that is no command is a goal: `septet "an analog clock"` is `septet run "an analog clock"`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from septet.cli.output import show_notices

        show_notices()
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them, so that help is instant."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = expand_alias(args)
        if not args and sys.stdin.isatty():
            args = ["menu"]
        elif args and args[0] == "--project":
            args = ["project", *args[1:]]
        elif args and args[0] not in ("--help", "-h", "--version") and args[0] not in COMMANDS:
            check_goal(self.goal_in(ctx, args))
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def goal_in(self, ctx: click.Context, args: list[str]) -> str:
        """The first word that is neither an option of `run` nor the value of one."""
        if not args[0].startswith("-"):
            return args[0]
        run = self.get_command(ctx, "run")
        assert run is not None, "run is a command"
        values, _, _ = run.make_parser(ctx).parse_args(list(args))
        return str(values.get("goal") or "")


def expand_alias(args: list[str]) -> list[str]:
    """Replace an alias by its command; it is never a goal."""
    match args:
        case ["help", command, *_] if command in COMMANDS:
            return [command, "--help"]
        case ["help", *_]:
            return ["--help"]
        case ["version", *_]:
            return ["--version"]
        case ["ls", *rest]:
            return ["list", *rest]
        case ["status", *rest]:
            has_name = any(not word.startswith("-") for word in rest)
            return ["show" if has_name else "list", *rest]
        case _:
            return args


def check_goal(word: str) -> None:
    """Ask before a word that resembles a command is taken as a goal: goals cost money."""
    from septet.cli.output import confirm

    if word in COMMANDS:
        raise click.UsageError(f"options come after the command: septet {word} …")
    near = nearest_command(word)
    if not near:
        return
    cause = f"there is no command '{word}': did you mean '{near}'?"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{cause} (if it is a goal: septet run {word})")
    if not confirm(f"septet: {cause} Build '{word}' as a goal?"):
        raise click.UsageError(f"'{word}' was not built (see septet {near} --help)")


def nearest_command(word: str) -> str:
    """Return the command that a single word resembles; empty if it can only be a goal."""
    from difflib import get_close_matches

    if " " in word:
        return ""
    near = get_close_matches(word, [*COMMANDS, *ALIASES], n=1, cutoff=MIN_SIMILARITY)
    return SYNONYMS.get(word) or (near[0] if near else "")


@click.group(cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="septet", message="%(prog)s %(version)s")
def septet() -> None:
    """A team of seven agents that plans with you, writes code, runs and tests it in a sandbox, reviews it
    and iterates until checks prove that it works.

    \b
    septet demo clock                     see it work: offline, no key
    septet "an analog clock"              plan with me, then build
    septet run "word count" --yes --json  no questions, machine-readable
    septet resume                         go on where you stopped
    """


class CurrentChat:
    """The state of the chat that a command runs, and the command that resumes it; used in error messages."""

    state: "State | None" = None
    command: str = ""


def main() -> None:
    """The `septet` command: every error ends in one line and the right exit code."""
    escape_for_locale()
    outcome = CurrentChat()
    try:
        check_encoding(sys.argv[1:])
        code = septet.main(prog_name="septet", standalone_mode=False, obj=outcome) or 0
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        code = fail(f"{error.format_message()}{hint}", error.exit_code, outcome)
    except (click.Abort, KeyboardInterrupt):
        code = fail(interrupt_message(outcome), 130, outcome)
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except Exception as error:  # the last resort: a person sees one line, never a traceback
        code = fail(*explain(error), outcome)
    sys.exit(code)


def escape_for_locale() -> None:
    """Write characters that the terminal's encoding lacks as JSON escapes, ✓ as \\u2713, instead of failing."""
    import codecs
    from io import TextIOWrapper

    def escape_json(error: UnicodeError) -> tuple[str, int]:
        from json import dumps

        assert isinstance(error, UnicodeEncodeError)
        return dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("septet", escape_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="septet")


def check_encoding(arguments: list[str]) -> None:
    """Refuse arguments that are not valid UTF-8, since they go into the log."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(
                f"{argument[:40]!a} cannot be decoded in this locale: use a UTF-8 one, e.g. LC_ALL=C.UTF-8"
            ) from None


def interrupt_message(outcome: CurrentChat) -> str:
    return f"interrupted and saved: {outcome.command}" if outcome.command else "interrupted"


def explain(error: Exception) -> tuple[str, int]:
    from septet.cli.errors import explanation

    return explanation(error)


def fail(message: str, code: int, outcome: CurrentChat) -> int:
    """Print the error in one line; with `--json`, a command that runs a chat still ends with its result."""
    from septet.cli.output import notify, put_exactly

    notify(f"septet: {message}")
    arguments = sys.argv[1:]
    command = next((argument for argument in arguments if not argument.startswith("-")), "run")
    if "--json" in arguments and (command in CHAT_COMMANDS or command not in COMMANDS):
        from septet.cli.errors import failed_result

        put_exactly(failed_result(message, code, outcome.state))
    return code
