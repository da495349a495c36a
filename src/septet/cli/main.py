"""The command line: commands by name, loaded when they are called, and errors in one line."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from septet.domain.state import State

COMMANDS = {
    "run": ("septet.cli.run:run", "Plan with me, then build until checks prove it works."),
    "plan": ("septet.cli.run:plan", "Talk about the plan only."),
    "project": ("septet.cli.run:project", "Go on with a project by its name, or begin it."),
    "demo": (
        "septet.cli.run:demo",
        "Watch a team build something: scripted answers, really run here. No key, no network.",
    ),
    "resume": ("septet.cli.run:resume", "Go on with a chat exactly where it stopped."),
    "fork": ("septet.cli.maintenance:fork", "The same start, a new branch of history."),
    "menu": ("septet.cli.menu:menu", "Projects: new, continue, edit, run, delete, options."),
    "list": ("septet.cli.chats:list_chats", "All chats, the newest first."),
    "show": ("septet.cli.chats:show", "One chat: plan, versions, evidence, cost."),
    "search": ("septet.cli.search:search", "Where words were said, in all chats."),
    "diff": ("septet.cli.chats:diff", "What a chat would change in your folder, or between two versions."),
    "try": ("septet.cli.deliver:try_version", "Run the newest version before it is delivered."),
    "deliver": ("septet.cli.deliver:deliver", "Write what a chat has made into your folder, or to a branch."),
    "undo": ("septet.cli.deliver:undo", "Take back what a chat has delivered."),
    "export": (
        "septet.cli.export:export",
        "A chat as Markdown, a page, text, its raw log, or all in a zip.",
    ),
    "restore": ("septet.cli.maintenance:restore", "Bring a workspace back to a version or a snapshot."),
    "rename": ("septet.cli.maintenance:rename", "Give a chat another name."),
    "rm": ("septet.cli.maintenance:rm", "Delete a chat for good."),
    "host": ("septet.cli.cluster:host", "Start the server where members of many machines meet."),
    "join": ("septet.cli.cluster:join", "Serve roles for chats that are conducted elsewhere."),
    "conduct": ("septet.cli.cluster:conduct", "Build a goal with the members that have joined a server."),
    "up": ("septet.cli.cluster:up", "A host and a member for each role, on this machine, in one command."),
    "web": ("septet.web.command:web", "Watch, steer and see what was made, in a browser."),
    "models": (
        "septet.cli.models:models",
        "What there is to think with; `models get` fetches an embedded one.",
    ),
    "keys": ("septet.cli.models:keys", "Keys of providers, kept where only you can read them."),
    "config": ("septet.cli.config:config", "What is set, where and by what; schemas of the files."),
    "learn": ("septet.cli.learn:learn", "Teach the exemplar from files, folders and chats."),
    "facts": ("septet.cli.facts:facts", "What every team that works in a project is told."),
    "mcp": ("septet.cli.mcp:mcp", "Servers whose tools the assistants may use too."),
    "eval": ("septet.cli.eval:evaluate", "Measure a team by tasks with hidden tests."),
    "audit": ("septet.cli.audit:audit", "Which failure modes a transcript shows, ours or another program's."),
    "gauntlet": (
        "septet.cli.gauntlet:gauntlet",
        "Teams that misbehave in every known way, and how they end here.",
    ),
    "exec": ("septet.cli.exec:execute", "Run something exactly as the runner would."),
    "completion": ("septet.cli.completion:completion", "Completion for bash, zsh and fish."),
    "doctor": ("septet.cli.doctor:doctor", "What works on this machine, and what to do about the rest."),
}


ALIASES = ("help", "version", "ls", "status")
"""What people try first: commands by other names."""
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
"""What other programs call a command of ours."""
NEAR = 0.7
"""How alike a word and a command are (1 is the same) where one may be meant for the other."""


RUNS = ("run", "plan", "project", "demo", "resume", "conduct")
"""Commands that work on a chat: their `--json` ends with its result."""


class Commands(click.Group):
    """Words that are no command are a goal: `septet "an analog clock"` is `septet run "an analog clock"`."""

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
        """Without loading them: help must be instant."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = expand_alias(args)
        first = next((word for word in args if not word.startswith("-")), "")
        if not args and sys.stdin.isatty():
            args = ["menu"]
        elif args and args[0] == "--project":
            args = ["project", *args[1:]]
        elif args and args[0] not in ("--help", "-h", "--version") and first not in COMMANDS:
            check_goal(first)
            args = ["run", *args]
        return super().parse_args(ctx, args)


def expand_alias(args: list[str]) -> list[str]:
    """The aliases as what they stand for: they are commands, never goals."""
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
            named = any(not word.startswith("-") for word in rest)
            return ["show" if named else "list", *rest]
        case _:
            return args


def check_goal(word: str) -> None:
    """A word that may be meant for a command is a goal only if the person says so: goals cost money."""
    from septet.cli.output import confirm

    near = nearest_command(word)
    if not near:
        return
    cause = f"there is no command '{word}': did you mean '{near}'?"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{cause} (if it is a goal: septet run {word})")
    if not confirm(f"septet: {cause} Build '{word}' as a goal?"):
        raise click.UsageError(f"'{word}' was not built (see septet {near} --help)")


def nearest_command(word: str) -> str:
    """The command that a single word looks like; nothing for what can only be a goal."""
    from difflib import get_close_matches

    if " " in word:
        return ""
    near = get_close_matches(word, [*COMMANDS, *ALIASES], n=1, cutoff=NEAR)
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


class CommandOutcome:
    """The chat that a command works on, as far as it has come, and what goes on with it: told with what went wrong."""

    state: "State | None" = None
    command: str = ""


def main() -> None:
    """The `septet` command: whatever goes wrong ends in one line and the right exit code."""
    escape_for_locale()
    outcome = CommandOutcome()
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
    """What the terminal's character set lacks is written as JSON writes it: ✓ as \\u2713, never an error."""
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


def check_encoding(words: list[str]) -> None:
    """Everything that is said goes into the log, which is UTF-8."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise click.UsageError(
                f"{word[:40]!a} is no text of this locale: use a UTF-8 one, e.g. LC_ALL=C.UTF-8"
            ) from None


def interrupt_message(outcome: CommandOutcome) -> str:
    return f"interrupted and saved: {outcome.command}" if outcome.command else "interrupted"


def explain(error: Exception) -> tuple[str, int]:
    from septet.cli.errors import explanation

    return explanation(error)


def fail(message: str, code: int, outcome: CommandOutcome) -> int:
    """One line; and `--json` of a command that works on a chat ends with its result all the same."""
    from septet.cli.output import notify, put_exactly

    notify(f"septet: {message}")
    words = sys.argv[1:]
    command = next((word for word in words if not word.startswith("-")), "run")
    if "--json" in words and (command in RUNS or command not in COMMANDS):
        from septet.cli.errors import failed_result

        put_exactly(failed_result(message, code, outcome.state))
    return code
