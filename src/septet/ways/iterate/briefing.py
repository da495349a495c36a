"""What planner, coder and reviewer are told each turn, built from the state: nothing depends on a truncated chat.

The first time, the coder sees the goal and the plan only. After that exactly these, the newest code, the newest
review and the newest run results; and whatever the person has asked for since, word for word.
"""

from septet.agents.questions import tells_held_back
from septet.domain.events import ModelAnswered, RunFinished, ToolAnswered, ToolCalled
from septet.domain.messages import Message
from septet.domain.plans import custom_checks, is_held, open_plan_text, plan_text
from septet.domain.runs import CONTROLS, DIAGNOSTIC_PURPOSES
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.baseline import has_project, suite_notes
from septet.team.briefing import (
    Sources,
    base_sections,
    changed_by_hand,
    environment_section,
    example_section,
    file_blocks,
    remarks_section,
    run_section,
    unusual_environment_section,
    wishes_in_turn,
    wishes_section,
)
from septet.team.challenges import challenge_decisions_section, challenge_section, unplanned_wishes
from septet.team.confirmations import calls_to_confirm, special_cases_to_confirm
from septet.team.evidence import evidence_report, result_lines
from septet.team.questions import ASK, NO_ANSWER
from septet.team.reviews import review_text
from septet.team.small_form import file_names, functions_of, states_function, wants_function
from septet.ways.prompts import prompt_text

PACKAGE = "septet.ways.iterate"
SHOWN_KINDS = (".png", ".jpg", ".jpeg", ".gif", ".webp")


LARGEST_PICTURE = 3 << 20


MOST_PICTURES = 3


def briefing(member: RoleSpec, state: State, sources: Sources) -> tuple[Message, ...]:
    """The messages for this member's next answer: first the part that never changes, then the rest."""
    small = member.form == "small"
    sections = {"planner": planner_sections, "coder": coder_sections, "reviewer": reviewer_sections}
    if small:
        sections |= {"coder": small_coder_sections, "reviewer": small_reviewer_sections}
    parts = sections[member.role](state, sources)
    if member.role != "reviewer":
        parts += unusual_environment_section(state) if small else [environment_section(state)]
    parts += facts_section(state)
    refused = refusal_messages(member, state)
    if refused and small:
        parts.append(refused[-1].text)
    part = prompt_text(PACKAGE, prompt_name(member, state))
    head = "\n".join(filter(None, [part, member.instructions]))
    seen = pictures(state) if member.role == "reviewer" and not small else {}
    if seen:
        parts.append(f"# Pictures that the program made, as shown\n{', '.join(seen)}")
    said = Message(role="user", text="\n\n".join(parts), images=tuple(seen.values()))
    return (Message(role="system", text=head), said, *(() if small else refused))


def prompt_name(member: RoleSpec, state: State) -> str:
    if member.form != "small":
        return member.role
    return f"{member.role}.{'function' if member.role == 'coder' and states_function(state) else 'small'}"


def refusal_messages(member: RoleSpec, state: State) -> tuple[Message, ...]:
    """The refused reply, word for word, and the reason; empty if the last reply was accepted."""
    refused = state.talk.refusal_of(member.name)
    if refused is None:
        return ()
    spoken = (said for said in reversed(state.talk.messages) if isinstance(said, ModelAnswered))
    reply = next((said.answer.text for said in spoken if said.role == member.name), "")
    why = f"# Your last reply could not be used\n{refused.reason}\nReply again in the form described."
    said = [Message(role="assistant", text=reply)] if reply.strip() else []
    return (*said, Message(role="user", text=why))


MENDING = """\
# Tests of this project as checks
mends TARGET: a test that fails in the project as it is and must pass (`check: mends tests/test_x.py::test_y`;
of JavaScript, `test/x.test.js::group > name`; of Rust, `src/lib.rs::tests::name`).
The coder can read such a test. Where it calls a function with plain values, or a command, give the same requirement
checks that are held back too: the test's own call with what the goal wants, and one that no test makes.
That no other test which passes now fails later is demanded anyway: no requirement is needed for it.
"""


CHANGE = """\
# Checks that show the change
At least one check must fail in the project as it is. A change that no run can show, such as a clean-up, has a
requirement with `check: judged`; a plan that rests on nothing else ends as a claim, not as done."""


AMEND = """\
# What is wanted now
For each new wish a requirement with a check, in the form of a plan; they are added to the plan, whose requirements stay
and need not be repeated. Reply `no new requirement` if its checks show the wishes already, or nothing was asked for."""
CONFIRM = """\
# What the goal says of these calls
{calls}
{why}
For each of them add a requirement with a check that is held back and has the value that the goal wants:
`check: held example CALL => VALUE`, of a method
`check: held command python -c "from app import Stock; print(Stock().price(2, 3))" => VALUE`. Work it out from the goal,
not from the tests: they may be wrong. The plan's requirements stay and need not be repeated."""
SPECIAL = "The program gives what is tested there by code that is there for these inputs alone."
READABLE = """\
The coder could read every input that shows the change. Some of these calls are made by its tests, others by none.
Leave out those whose value is certain neither from the goal nor from the project; if that is all of them, reply
`no new requirement`."""
STRICT = """\
# Strict
Tests that the coder is yet to write prove nothing here: every requirement needs another check, such as an example."""


def planner_sections(state: State, sources: Sources) -> list[str]:
    parts = [f"# Goal\n{state.goal}", *check_kinds_section(), *base_sections(state)]
    if state.base is not None and state.base.survey.tests:
        parts.append(MENDING.rstrip())
    if has_project(state):
        parts.append(CHANGE)
    if state.team.strict:
        parts.append(STRICT)
    if state.plan.current is not None:
        parts.append(f"# The plan as it is\n{plan_text(state.plan.current).rstrip()}")
    parts += challenge_section(state) + wishes_section(state)
    if calls := calls_to_confirm(state):
        why = SPECIAL if special_cases_to_confirm(state) else READABLE
        parts.append(CONFIRM.format(calls="\n".join(f"- {one}" for one in calls), why=why))
    if unplanned_wishes(state):
        parts.append(AMEND)
    return parts + remarks_section(state, "# The person wants it changed")


def check_kinds_section() -> list[str]:
    """Custom kinds of check of the program or an installed package."""
    forms = [f"- {kind.form}" for kind in custom_checks().values()]
    return ["\n".join(["# Further kinds of check", *forms])] if forms else []


def coder_sections(state: State, sources: Sources) -> list[str]:
    parts = [
        goal_section(state),
        plan_section(state),
        *wishes_section(state),
        *challenge_decisions_section(state),
        *questions_section(state, "coder"),
    ]
    if state.work.version is not None:
        parts += [
            code_section(state, sources),
            review_section(state),
            runs_section(state),
            *example_section(state),
        ]
    return parts + remarks_section(state, "# The person says")


def reviewer_sections(state: State, sources: Sources) -> list[str]:
    asked = [goal_section(state), plan_section(state), *wishes_section(state)]
    asked += questions_section(state, "reviewer")
    parts = [*asked, code_section(state, sources), *answer_section(state), runs_section(state)]
    return parts + remarks_section(state, "# The person tried it and says")


def pictures(state: State) -> dict[str, str]:
    """Paths and addresses of images from runs of the newest version, the newest last, without too large ones."""
    changes = [change for run in state.work.runs for change in run.result.changes]
    drawn = {
        change.path: change.sha256
        for change in changes
        if change.path.lower().endswith(SHOWN_KINDS)
        and change.size <= LARGEST_PICTURE
        and change.sha256
        and state.work.artefacts.get(change.path) == change.sha256
    }
    return dict(list(drawn.items())[-MOST_PICTURES:])


def answer_section(state: State) -> list[str]:
    """The coder's answers to findings, so that the reviewer does not repeat them."""
    if state.work.version is None or not state.work.version.answers:
        return []
    findings = {one.id: one.text for one in (state.work.reviews[-1].findings if state.work.reviews else ())}
    lines = [
        f"- {one.finding} ({findings.get(one.finding, '')}): {one.answer}{f', {one.reason}' if one.reason else ''}"
        for one in state.work.version.answers
    ]
    return [
        "\n".join(
            [f"# The coder's answers to the review of version {state.work.reviews[-1].version}", *lines]
        )
    ]


def small_coder_sections(state: State, sources: Sources) -> list[str]:
    """A short prompt with the failures: a small model rewrites code better than it repairs it.

    Candidates for a function are drawn anew from the same words: shown failures, small models repeat the failures.
    """
    parts = [small_goal(state)]
    if state.work.version is not None:
        failed = [f"- {line.item.text}: {line.detail}" for line in evidence_report(state) if not line.is_met]
        confirmed = state.work.version.confirmation
        if failed and not wants_function(state):
            parts.append("\n".join(["# What failed last time; do it differently", *failed]))
        elif confirmed is not None and confirmed.verdict == "contradicted":
            parts.append(f"# Two programs disagreed last time; do what the goal says\n- {confirmed.detail}")
    return parts + remarks_section(state, "# The person says")


def opinion_briefing(state: State, call: str) -> tuple[Message, ...]:
    """Asks what a call must return; an assert that is begun is completed better than a question is answered."""
    asked = f"{small_goal(state)}\n\nWhat must {call} return?\nassert {call} == …"
    return (
        Message(role="system", text=prompt_text(PACKAGE, "coder.opinion")),
        Message(role="user", text=asked),
    )


def small_reviewer_sections(state: State, sources: Sources) -> list[str]:
    """A short prompt without tests: the small reviewer is asked only if every check is green."""
    program, _ = file_names(state)
    return [small_goal(state), f"# Module {program}\n```python\n{sources.get(program, '')}```"]


def small_goal(state: State) -> str:
    """The goal as it was written and what else the plan says, without checks: each word costs a small machine time."""
    flat = " ".join(state.goal.split())
    items = state.plan.items
    more = [
        item.text for item in items if item.text not in (flat, state.goal) and item.text not in state.goal
    ]
    wishes = (wish.text for wish in wishes_in_turn(state))
    named = [f"The function is called {name}." for name in functions_of(state) if name not in state.goal]
    return "\n".join([*([] if states_function(state) else ["# Goal"]), state.goal, *more, *named, *wishes])


def facts_section(state: State) -> list[str]:
    """The facts of the project."""
    return (
        ["\n".join(["# Facts about this project", *(f"- {fact}" for fact in state.facts)])]
        if state.facts
        else []
    )


def questions_section(state: State, member: str) -> list[str]:
    """What others have asked and been answered: it holds for everybody; no input that is held back is in it."""
    calls = [said for said in state.talk.messages if isinstance(said, ToolCalled)]
    asked = {call.id for call in calls if call.name == ASK and call.by != member}
    lines = [
        f"- {said.summary}"
        for said in state.talk.messages
        if isinstance(said, ToolAnswered) and said.id in asked and said.text != NO_ANSWER and not said.failed
        if not tells_held_back(state, said.summary)
    ]
    return ["\n".join(["# What was asked and answered", *lines])] if lines else []


def goal_section(state: State) -> str:
    return f"# Goal\n{state.goal}"


def plan_section(state: State) -> str:
    return f"# Plan\n{open_plan_text(state.plan.current).rstrip() if state.plan.current else 'none'}"


def code_section(state: State, sources: Sources) -> str:
    number = state.work.version.number if state.work.version else 0
    by_hand = f" ({', '.join(paths)} as the person changed it)" if (paths := changed_by_hand(state)) else ""
    return "\n\n".join([f"# Code, version {number}{by_hand}", *file_blocks(sources, sorted(sources))])


def review_section(state: State) -> str:
    newest = state.work.reviews[-1] if state.work.reviews else None
    return f"# Review of version {newest.version}\n{review_text(newest)}" if newest else "# Review\nnone yet"


def told_runs(state: State) -> list[RunFinished]:
    """What the runs of examples that are held back print would give them away; what repeats tests says nothing new."""
    held = {item.id for item in state.plan.items if is_held(item.check)}
    silent = DIAGNOSTIC_PURPOSES - CONTROLS
    return [run for run in state.work.runs if run.about not in held and run.purpose not in silent]


def runs_section(state: State) -> str:
    return "\n\n".join(["# What the runner saw", *map(run_section, told_runs(state)), check_lines(state)])


def check_lines(state: State) -> str:
    """The requirements with their results, and notes about the project's tests."""
    return "\n".join([*result_lines(state), *(f"- {note}" for note in suite_notes(state))])
