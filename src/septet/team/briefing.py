"""Prompt sections that several ways share: wishes, remarks, runs, examples, and the environment of programs."""

import re
from collections.abc import Iterable, Mapping

from septet.common.text import cut_middle, join_words
from septet.domain.events import RunFinished
from septet.domain.plans import Wish
from septet.domain.state import State
from septet.team.evidence import remarks_in_turn

MAX_SHOWN_OUTPUT = 6_000
MAX_SHOWN_OF_NO_TEST = 1_500
"""Of tests that end before the first one; what ended them is said at the end of a long traceback."""
"""Characters of each stream in a prompt; the end, where errors are, is never cut."""


Sources = Mapping[str, str]
"""The newest version's text files, by path."""


def example_section(state: State) -> list[str]:
    """The exemplar's example for the current failure."""
    given = state.work.example
    if given is None or given.failure != state.work.failure:
        return []
    if not given.code:
        return [f"# The exemplar\nno example for: {given.failure}"]
    code = f"```python\n{given.code.rstrip()}\n```"
    return [f"# The exemplar\nfor: {given.failure}\nfrom {given.source}: {given.title}\n{code}"]


def wishes_section(state: State) -> list[str]:
    """The person's wishes since the plan was approved, word for word."""
    lines = [f"- {wish.id}{'' if wish.version else ' (new)'}: {wish.text}" for wish in wishes_in_turn(state)]
    return ["\n".join(["# What the person asked for since", *lines])] if lines else []


def wishes_in_turn(state: State) -> tuple[Wish, ...]:
    """The wishes that the person sent before this turn began."""
    opened = state.floor.turn.opened_at if state.floor.turn else state.seq + 1
    return tuple(wish for wish in state.plan.wishes if wish.said < opened)


def edited_files_section(state: State, sources: Sources) -> list[str]:
    """The files that the person changed by hand, for members who know the code from the conversation."""
    paths = changed_by_hand(state)
    return ["\n\n".join(["# The person changed this by hand", *file_blocks(sources, paths)])] if paths else []


def changed_by_hand(state: State) -> list[str]:
    """Paths of the newest version's files that the person changed by hand."""
    if state.work.version is None or not state.work.version.found:
        return []
    before = {
        file.path: file.sha256
        for file in (state.work.versions[-2].files if len(state.work.versions) > 1 else ())
    }
    return [file.path for file in state.work.version.files if before.get(file.path) != file.sha256]


def file_blocks(sources: Sources, paths: Iterable[str]) -> list[str]:
    return [f"```python {path}\n{sources.get(path, '')}```" for path in paths]


PASSED_OUTPUT = re.compile(
    r"^=+ short test summary info =+\n(?:PASSED .*\n)*(?=\d+ passed)"
    r"|^PASSED .*\n|^=+ PASSES =+\n(?:(?!=+ ).*\n)*",
    re.MULTILINE,
)
"""What passing tests print is left out: pytest's last line counts them, and hundreds would hide the failures."""


def run_section(run: RunFinished) -> str:
    result = run.result
    ending = f"stopped: {result.stopped_by} limit" if result.stopped_by else f"exit {result.exit_code}"
    streams = [("stdout", PASSED_OUTPUT.sub("", result.stdout)), ("stderr", result.stderr)]
    never_started = result.tests is not None and not result.tests.cases
    limit = MAX_SHOWN_OF_NO_TEST if never_started else MAX_SHOWN_OUTPUT
    shown = [f"{name}:\n{head_and_tail(text, limit)}" for name, text in streams if text.strip()]
    return "\n".join([f"## {run.title}: `{run.command}` → {ending}", *shown])


def head_and_tail(text: str, limit: int = MAX_SHOWN_OUTPUT) -> str:
    """Cut the middle of a long text; the tail is twice as long as the head, because errors are at the end."""
    return cut_middle(text, limit)


def remarks_section(state: State, title: str) -> list[str]:
    """The person's messages before this turn began, except wishes, which have their own section."""
    wishes = {wish.text for wish in state.plan.wishes}
    said = [remark for remark in remarks_in_turn(state) if remark.text not in wishes]
    return ["\n".join([title, *(remark.text for remark in said)])] if said else []


PACKAGE_SENTENCES = {
    "ask": "Packages of the public index may be imported: what is missing is installed if the person agrees.",
    "auto": "Packages of the public index may be imported: what is missing is installed before the run.",
}
BY_PROXY = "by the proxy in the environment, which urllib, requests, curl and the like use by themselves"


def base_sections(state: State) -> list[str]:
    """The person's project as it was found."""
    if state.base is None or state.base.survey.kind == "empty":
        return []
    survey = state.base.survey
    tests = f"\nIts tests: `{survey.tests}` ({survey.tests_source})" if survey.tests else ""
    parts = [f"# The project in the workspace\n{survey.map.rstrip()}{tests}"] if survey.map else []
    if survey.conventions:
        parts.append(f"# Its conventions\n{survey.conventions.rstrip()}")
    return parts


def environment_section(state: State, *, can_ask: bool = True) -> str:
    """What programs run with, what they can reach and how much they may use.

    A member that works within a tool call cannot wait for the person: without `can_ask`, packages that need approval
    are not mentioned.
    """
    packages = package_lines(state, can_ask) or ["Nothing else can be imported."]
    lines = [language_line(state), *packages, network_line(state), limits_line(state)]
    return "\n".join(["# Where programs run", *lines])


def unusual_environment_section(state: State) -> list[str]:
    """What programs can reach beyond the usual, for small models: each word costs a small machine time."""
    network = [network_line(state)] if state.team.network != "off" else []
    lines = [*network, *package_lines(state, can_ask=True)]
    return ["\n".join(["# Where programs run", *lines])] if lines else []


MOST_PACKAGES = 80


def language_line(state: State) -> str:
    """Python, packages and commands as the sandbox has them; without a look at it only what is always there."""
    found = state.environment
    if found is None:
        return "In a sandbox with Python's standard library and pytest."
    more = len(found.packages) - MOST_PACKAGES
    named = [*found.packages[:MOST_PACKAGES], *([f"{more} more"] if more > 0 else [])]
    commands = f" Commands: {', '.join(found.commands)}." if found.commands else ""
    importable = join_words([f"Python {found.python}", "its standard library", *named])
    return f"In a sandbox with {importable}.{commands}"


def network_line(state: State) -> str:
    network, local = state.team.network, "A server listens on a free port of 127.0.0.1."
    if network == "off":
        return f"There is no network. {local}"
    where = "every public host" if isinstance(network, str) else f"only {', '.join(network)}"
    return f"They can reach {where} over HTTP and HTTPS, {BY_PROXY}. {local}"


def limits_line(state: State) -> str:
    limits = state.team.limits
    return (
        f"A run may take {limits.seconds:g} s, {limits.memory >> 20:,} MiB of memory and {limits.processes} processes, "
        "and writes only in the workspace and in /tmp. Nobody types: standard input is empty."
    )


def package_lines(state: State, can_ask: bool) -> list[str]:
    policy = "off" if state.team.packages == "ask" and not can_ask else state.team.packages
    return [PACKAGE_SENTENCES[policy]] if policy in PACKAGE_SENTENCES else []
