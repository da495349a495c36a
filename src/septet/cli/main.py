"""The command line: imports a command when it is called, and reports errors in one line."""

import shlex
import sys
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from septet.domain.state import State

SECTIONS = {
    "Start": {
        "run": ("septet.cli.run:run", "Plan with me, then build until checks prove it works."),
        "plan": ("septet.cli.run:plan", "Agree on a plan only."),
        "demo": ("septet.cli.run:demo", "Watch a scripted team build real code: no key, no network."),
        "resume": ("septet.cli.run:resume", "Continue a chat exactly where it stopped."),
        "ci": ("septet.cli.ci:ci", "Build in a pipeline: no questions, no downloads, reports for machines."),
        "review": (
            "septet.cli.ci:review",
            "Review a branch or a patch, and prove findings by failing tests.",
        ),
        "fork": ("septet.cli.maintenance:fork", "Start a new chat from a copy of another."),
        "project": ("septet.cli.run:project", "Continue a project by its name, or start it."),
        "menu": ("septet.cli.menu:menu", "Projects: new, continue, edit, run, delete, options."),
        "web": ("septet.web.command:web", "Watch and steer chats in a browser."),
    },
    "Look": {
        "list": ("septet.cli.chats:list_chats", "List all chats, most recently changed first."),
        "show": ("septet.cli.chats:show", "Show one chat: plan, versions, evidence, cost."),
        "watch": ("septet.cli.follow:watch", "Follow a chat that runs in another terminal."),
        "diff": ("septet.cli.chats:diff", "Show what a chat changes, or two versions of it."),
        "try": ("septet.cli.deliver:try_version", "Run the newest version before it is delivered."),
        "search": ("septet.cli.search:search", "Search the text of all chats."),
        "export": ("septet.cli.export:export", "Export a chat as Markdown, HTML, text, its log, or a zip."),
        "replay": ("septet.cli.replay:replay", "Run a recorded chat again offline and compare the logs."),
        "audit": ("septet.cli.audit:audit", "Find the failure modes in a transcript."),
    },
    "Manage": {
        "deliver": ("septet.cli.deliver:deliver", "Write a chat's work into your folder, or to a branch."),
        "undo": ("septet.cli.deliver:undo", "Undo what a chat has delivered."),
        "restore": ("septet.cli.maintenance:restore", "Bring a workspace back to a version or a snapshot."),
        "rename": ("septet.cli.maintenance:rename", "Give a chat another name."),
        "rm": ("septet.cli.maintenance:rm", "Delete a chat for good."),
        "backup": (
            "septet.cli.maintenance:backup",
            "Write all chats to a file, or read them back.",
        ),
        "gc": ("septet.cli.maintenance:gc", "Free disk space that no chat needs; show what is used."),
        "learn": ("septet.cli.learn:learn", "Add code examples from files, folders and chats."),
        "facts": ("septet.cli.facts:facts", "Show or change the facts that every team of a project knows."),
        "exec": ("septet.cli.exec:execute", "Run a file or a command in the sandbox, as the runner does."),
        "eval": ("septet.cli.eval:evaluate", "Evaluate a team on tasks with hidden tests."),
        "gauntlet": ("septet.cli.gauntlet:gauntlet", "Run teams that misbehave, and show how they end."),
    },
    "Machines": {
        "host": ("septet.cli.cluster:host", "Start the server for members on many machines."),
        "join": ("septet.cli.cluster:join", "Serve roles for chats that are conducted elsewhere."),
        "conduct": ("septet.cli.cluster:conduct", "Build a goal with the members that have joined a server."),
        "up": ("septet.cli.cluster:up", "Start a host and a member for each role on this machine."),
    },
    "Settings": {
        "init": ("septet.cli.models:init", "Set up: check this machine and choose a model."),
        "login": ("septet.cli.models:login", "Check and store the API key of a provider."),
        "models": ("septet.cli.models:models", "List the models; `models get` downloads an embedded one."),
        "keys": ("septet.cli.models:keys", "List, store and delete API keys, readable only by you."),
        "config": ("septet.cli.config:config", "Show and edit the settings; print schemas of the files."),
        "trust": (
            "septet.cli.config:trust",
            "Let finished work be written into a folder without a question.",
        ),
        "acp": ("septet.cli.mcp:acp", "Serve an editor: Zed, JetBrains, neovim and other clients of ACP."),
        "a2a": ("septet.cli.mcp:a2a", "Serve other agents by A2A, on the page's server."),
        "mcp": ("septet.cli.mcp:mcp", "Add MCP servers, whose tools members may use; or be one."),
        "doctor": (
            "septet.cli.doctor:doctor",
            "Check what works on this machine, and what to do about the rest.",
        ),
        "completion": (
            "septet.cli.completion:completion",
            "Print the completion script for bash, zsh or fish.",
        ),
    },
}
"""The commands in the sections of `--help`: module and function, and a summary that needs no import."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
ALIASES = ("help", "version", "ls", "status")
"""Other names of commands, which people try first."""
SYNONYMS = {
    "resume": "continue edit steer answer",
    "run": "build new start create make generate go chat ask code",
    "list": "chats sessions projects runs",
    "show": "history log logs cost usage info open view",
    "watch": "follow tail attach monitor",
    "rm": "delete remove del",
    "config": "settings configure set get env preferences",
    "keys": "logout auth signin key apikey",
    "init": "setup install configure-model onboard",
    "web": "ui serve server browser dashboard gui",
    "deliver": "apply commit accept merge push",
    "undo": "revert",
    "restore": "rollback checkout",
    "doctor": "check diagnose selftest health",
    "fork": "copy cp clone branch",
    "rename": "mv",
    "models": "pull download fetch providers",
    "demo": "example examples tutorial",
    "completion": "completions autocomplete",
    "version": "update upgrade",
    "exec": "shell sandbox test",
    "help": "man usage-help commands",
}
"""What other programs call our commands; used for suggestions."""
MIN_SIMILARITY = 0.7
"""How similar a word and a command must be (1 is equal) for a suggestion."""
UNSPACED = "\u0e00"
"""From here on are scripts that do not put spaces between words, so that a goal may look like one word."""


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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in their sections without importing them, after the options of `run` that matter."""
        run = self.get_command(ctx, "run")
        assert run is not None, "run is a command"
        with formatter.section("Options for a goal (all: septet run --help)"):
            formatter.write_dl(main_option_records(run, ctx))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])
        with formatter.section("Other options"):
            formatter.write_dl([("--version", "Show the version."), ("-h, --help", "Show this message.")])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = expand_alias(args)
        if not args and sys.stdin.isatty():
            args = ["menu"]
        elif args and args[0] == "--project":
            args = ["project", *args[1:]]
        elif args and args[0] not in ("--help", "-h", "--version") and args[0] not in COMMANDS:
            check_goal(*self.goal_in(ctx, args))
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def goal_in(self, ctx: click.Context, args: list[str]) -> tuple[str, str]:
        """The first word that is neither an option of `run` nor the value of one, and the words that follow it."""
        if not args[0].startswith("-"):
            return args[0], " ".join(takewhile(lambda word: not word.startswith("-"), args[1:]))
        run = self.get_command(ctx, "run")
        assert run is not None, "run is a command"
        values, _, _ = run.make_parser(ctx).parse_args(list(args))
        goal = values.get("goal")
        return (goal if isinstance(goal, str) else ""), ""


def expand_alias(args: list[str]) -> list[str]:
    """Replace an alias by its command; it is never a goal."""
    match args:
        case ["help", command, *_] if command in COMMANDS:
            return [command, "--help"]
        case ["help", command, *_] if not command.startswith("-"):
            cause = unknown_command(command, nearest_command(command))
            raise click.UsageError(f"{cause} (septet --help lists them)")
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


def main_option_records(run: click.Command, ctx: click.Context) -> list[tuple[str, str]]:
    from septet.cli.options import split_options

    records = (parameter.get_help_record(ctx) for parameter in split_options(run.params)[0])
    return [record for record in records if record is not None]


def check_goal(word: str, more: str = "") -> None:
    """Ask before a single word is taken as a goal: goals cost money, and most single words are slips.

    `more` are the words after it: a goal without quotes.
    """
    from septet.cli.output import confirm

    if word in COMMANDS:
        raise click.UsageError(f"options come after the command: septet {word} …")
    if word in ("", "-") or not is_single_word(word):
        return
    near = nearest_command(word)
    cause = unknown_command(word, near)
    if more or not (sys.stdin.isatty() and sys.stderr.isatty()):
        how = f"if it is a goal: septet run {shlex.quote(f'{word} {more}'.strip())}"
        raise click.UsageError(f"{cause} ({how})" if near else f"{cause}; {how}")
    if not confirm(f"septet: {cause}{'' if near else '.'} Build '{word}' as a goal?"):
        raise click.UsageError(f"'{word}' was not built (see septet {near or ''}{' ' if near else ''}--help)")


def unknown_command(word: str, near: str) -> str:
    return f"there is no command '{word}'" + (f": did you mean '{near}'?" if near else "")


def is_single_word(text: str) -> bool:
    return len(text.split()) == 1 and all(character < UNSPACED for character in text)


def nearest_command(word: str) -> str:
    """Return the command that a word resembles; empty if there is none."""
    from difflib import get_close_matches

    synonyms = {other: command for command, others in SYNONYMS.items() for other in others.split()}
    word = word.lower().strip("-_.!?")
    if word in synonyms:
        return synonyms[word]
    for words in ({name: name for name in (*COMMANDS, *ALIASES)}, synonyms):
        if near := get_close_matches(word, words, n=1, cutoff=MIN_SIMILARITY):
            return words[near[0]]
    return ""


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
    except click.exceptions.NoArgsIsHelpError as error:
        from septet.cli.output import notify

        notify(error.format_message())
        code = error.exit_code
    except click.ClickException as error:
        code = fail(explain_usage(error), error.exit_code, outcome)
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


def explain_usage(error: click.ClickException) -> str:
    from septet.cli.errors import usage_message

    return usage_message(error, sys.argv[1:], (*COMMANDS, *ALIASES))


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
