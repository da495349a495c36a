"""What a member is told each turn, built from the state: nothing depends on a truncated chat.

The first time, the coder sees the goal and the plan only. After that exactly these, the newest code, the
newest review and the newest run results; and whatever the person has asked for since, word for word.
"""

from collections.abc import Iterable, Mapping

from septet.common.text import cut_middle
from septet.domain.events import RunFinished
from septet.domain.messages import Message
from septet.domain.plans import Wish, plan_text
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.evidence import heard, report
from septet.team.reviews import review_text
from septet.team.roles import INSTRUCTIONS
from septet.team.small_form import HEADS, file_names, names_section

SHOWN_OUTPUT = 6_000
"""Characters of each stream that a member is shown; the end, where errors stand, is never cut away."""

SHOWN_KINDS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LARGEST_PICTURE = 3 << 20
MOST_PICTURES = 3

Sources = Mapping[str, str]
"""The newest version's text files, by path."""


def briefing(member: RoleSpec, state: State, sources: Sources) -> tuple[Message, ...]:
    """The messages for this member's next answer: a stable head, then what changes."""
    sections = {"planner": planner_sections, "coder": coder_sections, "reviewer": reviewer_sections}
    if member.form == "small":
        sections |= {"coder": small_coder_sections, "reviewer": small_reviewer_sections}
    parts = sections[member.role](state, sources) + surroundings(state) + facts_section(state)
    if state.refused is not None and state.refused.role == member.name:
        parts.append(
            f"# Your last reply could not be used\n{state.refused.reason}\nReply again in the form described."
        )
    heads = HEADS if member.form == "small" else INSTRUCTIONS
    head = "\n".join(filter(None, [heads[member.role], member.instructions]))
    seen = pictures(state) if member.role == "reviewer" and member.form == "text" else {}
    if seen:
        parts.append(f"# Pictures that the program made, as shown\n{', '.join(seen)}")
    said = Message(role="user", text="\n\n".join(parts), images=tuple(seen.values()))
    return (Message(role="system", text=head), said)


def planner_sections(state: State, sources: Sources) -> list[str]:
    parts = [f"# Goal\n{state.goal}"]
    if state.plan is not None:
        parts.append(f"# The plan that the person saw\n{plan_text(state.plan)}")
    return parts + wishes_section(state) + remarks(state, "# The person wants it changed")


def coder_sections(state: State, sources: Sources) -> list[str]:
    parts = [goal_section(state), plan_section(state), *wishes_section(state)]
    if state.version is not None:
        parts += [
            code_section(state, sources),
            review_section(state),
            run_section(state),
            *example_section(state),
        ]
    return parts + remarks(state, "# The person says")


def reviewer_sections(state: State, sources: Sources) -> list[str]:
    asked = [goal_section(state), plan_section(state), *wishes_section(state)]
    parts = [*asked, code_section(state, sources), *answer_section(state), run_section(state)]
    return parts + remarks(state, "# The person tried it and says")


def pictures(state: State) -> dict[str, str]:
    """Path and address of what runs of the newest version drew, the newest last; none too large to be sent."""
    changes = [change for run in state.runs for change in run.result.changes]
    drawn = {
        change.path: change.sha256
        for change in changes
        if change.path.lower().endswith(SHOWN_KINDS)
        and change.size <= LARGEST_PICTURE
        and change.sha256
        and state.artefacts.get(change.path) == change.sha256
    }
    return dict(list(drawn.items())[-MOST_PICTURES:])


def example_section(state: State) -> list[str]:
    """What the exemplar said to the failure that is open now."""
    given = state.example
    if given is None or given.failure != state.failure:
        return []
    if not given.code:
        return [f"# The exemplar\nno example for: {given.failure}"]
    code = f"```python\n{given.code.rstrip()}\n```"
    return [f"# The exemplar\nfor: {given.failure}\nfrom {given.source}: {given.title}\n{code}"]


def answer_section(state: State) -> list[str]:
    """Findings are not raised again as if nothing had been said to them."""
    if state.version is None or not state.version.answers:
        return []
    findings = {one.id: one.text for one in (state.reviews[-1].findings if state.reviews else ())}
    lines = [
        f"- {one.finding} ({findings.get(one.finding, '')}): {one.answer}{f', {one.reason}' if one.reason else ''}"
        for one in state.version.answers
    ]
    return [
        "\n".join([f"# The coder's answers to the review of version {state.reviews[-1].version}", *lines])
    ]


def small_coder_sections(state: State, sources: Sources) -> list[str]:
    """A small model writes better code anew than it mends its own: it is told what failed, briefly."""
    parts = [small_goal(state), names_section(state)]
    if state.version is not None:
        failed = [f"- {line.item.text}: {line.detail}" for line in report(state) if not line.met]
        confirmed = state.version.confirmation
        if failed:
            parts.append("\n".join(["# What failed last time; do it differently", *failed]))
        elif confirmed is not None and confirmed.verdict == "contradicted":
            parts.append(f"# Two programs disagreed last time; do what the goal says\n- {confirmed.detail}")
    return parts + remarks(state, "# The person says")


def small_reviewer_sections(state: State, sources: Sources) -> list[str]:
    """It is asked only when every check is green; the tests would only distract it."""
    program, _ = file_names(state)
    return [small_goal(state), f"# Module {program}\n```python\n{sources.get(program, '')}```"]


def small_goal(state: State) -> str:
    """The goal and its examples without their checks: each word costs a small machine time."""
    items = state.plan.items if state.plan else ()
    wishes = (wish.text for wish in heard_wishes(state))
    return "\n".join(["# Goal", *(item.text for item in items), *wishes])


def facts_section(state: State) -> list[str]:
    """What is known for good about the project."""
    return (
        ["\n".join(["# Facts about this project", *(f"- {fact}" for fact in state.facts)])]
        if state.facts
        else []
    )


def goal_section(state: State) -> str:
    return f"# Goal\n{state.goal}"


def plan_section(state: State) -> str:
    return f"# Plan\n{plan_text(state.plan) if state.plan else 'none'}"


def wishes_section(state: State) -> list[str]:
    """What the person has asked for since the plan was approved, word for word."""
    lines = [f"- {wish.id}{'' if wish.version else ' (new)'}: {wish.text}" for wish in heard_wishes(state)]
    return ["\n".join(["# What the person asked for since", *lines])] if lines else []


def heard_wishes(state: State) -> tuple[Wish, ...]:
    """The wishes that a member knows in this turn."""
    opened = state.turn.opened if state.turn else state.seq + 1
    return tuple(wish for wish in state.wishes if wish.said < opened)


def code_section(state: State, sources: Sources) -> str:
    number = state.version.number if state.version else 0
    by_hand = f" ({', '.join(paths)} as the person changed it)" if (paths := changed_by_hand(state)) else ""
    return "\n\n".join([f"# Code, version {number}{by_hand}", *blocks(sources, sorted(sources))])


def found_section(state: State, sources: Sources) -> list[str]:
    """For members who know the code from the talk: the files that the person has changed since."""
    paths = changed_by_hand(state)
    return ["\n\n".join(["# The person changed this by hand", *blocks(sources, paths)])] if paths else []


def changed_by_hand(state: State) -> list[str]:
    """What the newest version has from the person."""
    if state.version is None or not state.version.found:
        return []
    before = {
        file.path: file.sha256 for file in (state.versions[-2].files if len(state.versions) > 1 else ())
    }
    return [file.path for file in state.version.files if before.get(file.path) != file.sha256]


def blocks(sources: Sources, paths: Iterable[str]) -> list[str]:
    return [f"```python {path}\n{sources.get(path, '')}```" for path in paths]


def review_section(state: State) -> str:
    newest = state.reviews[-1] if state.reviews else None
    return f"# Review of version {newest.version}\n{review_text(newest)}" if newest else "# Review\nnone yet"


def run_section(state: State) -> str:
    checks = [f"- {line.item.id} {'met' if line.met else 'NOT met'}: {line.detail}" for line in report(state)]
    return "\n\n".join(["# What the runner saw", *map(run_text, state.runs), "\n".join(checks)])


def run_text(run: RunFinished) -> str:
    result = run.result
    ending = f"stopped: {result.stopped_by} limit" if result.stopped_by else f"exit {result.exit_code}"
    streams = [("stdout", result.stdout), ("stderr", result.stderr)]
    shown = [f"{name}:\n{shortened(text)}" for name, text in streams if text.strip()]
    return "\n".join([f"## {run.title}: `{run.command}` → {ending}", *shown])


def shortened(text: str, limit: int = SHOWN_OUTPUT) -> str:
    """Head and tail; twice as much tail as head, because errors stand at the end."""
    return cut_middle(text, limit)


def remarks(state: State, title: str) -> list[str]:
    """What else the person said before this turn began: a wish has its own place."""
    wishes = {wish.text for wish in state.wishes}
    said = [remark for remark in heard(state) if remark.text not in wishes]
    return ["\n".join([title, *(remark.text for remark in said)])] if said else []


INSTALLED = {
    "ask": "Packages of the public index may be imported: what is missing is installed if the person agrees.",
    "auto": "Packages of the public index may be imported: what is missing is installed before the run.",
}
BY_PROXY = "by the proxy in the environment, which urllib, requests, curl and the like use by themselves"


def surroundings(state: State, *, can_ask: bool = True) -> list[str]:
    """A section, or nothing where there is neither network nor a way to install packages.

    Who works in the middle of a call cannot wait for the person: there, packages that are asked for are no use.
    """
    lines = [*network_lines(state), *package_lines(state, can_ask)]
    return ["\n".join(["# Where programs run, beyond what is said above", *lines])] if lines else []


def network_lines(state: State) -> list[str]:
    network = state.team.network
    if network == "off":
        return []
    where = "every public host" if isinstance(network, str) else f"only {', '.join(network)}"
    return [f"They can reach {where} over HTTP and HTTPS, {BY_PROXY}."]


def package_lines(state: State, can_ask: bool) -> list[str]:
    policy = "off" if state.team.packages == "ask" and not can_ask else state.team.packages
    return [INSTALLED[policy]] if policy in INSTALLED else []
