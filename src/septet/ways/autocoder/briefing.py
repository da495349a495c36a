"""What the autocoder's coder is told: the context filled into a template, the plan, and what was tried."""

from septet.domain.messages import Message
from septet.domain.plans import open_plan_text
from septet.domain.runs import Screen
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.briefing import environment_section, remarks, wishes_section
from septet.team.context import Context, compose_prompt
from septet.team.reviews import review_text
from septet.ways.prompts import prompt_text

SITUATION = """\
# Goal
{{goal}}

# Situation, step {{epoch}}
{{reasoning}}

# Files
{{filetree_formatted}}

# Code
{{project_code_formatted}}
"""
TOLD_STEPS = 6


def act_prompt(member: RoleSpec, state: State, context: Context) -> tuple[Message, ...]:
    """A stable head, then the situation."""
    parts = [compose_prompt(SITUATION, context)]
    if state.plan.current is not None:
        parts.insert(0, f"# Plan\n{open_plan_text(state.plan.current)}")
    parts += environment_section(state)
    notes = [f"v{version.number}: {version.note}" for version in state.work.versions if version.note]
    if notes:
        parts.append("# What was done so far\n" + "\n".join(notes[-TOLD_STEPS:]))
    if state.work.review is not None:
        parts.append(f"# Review\n{review_text(state.work.review)}")
    parts += wishes_section(state) + remarks(state, "# The person says")
    if refused := state.talk.refusal_of(member.name):
        parts.append(f"# Your last action could not be done\n{refused.reason}")
    head = "\n".join(
        filter(
            None,
            [compose_prompt(prompt_text("septet.ways.autocoder", "coder"), context), member.instructions],
        )
    )
    shown = window(state) if member.form != "small" else ()
    return (Message(role="system", text=head), Message(role="user", text="\n\n".join(parts), images=shown))


def window(state: State) -> tuple[str, ...]:
    """The picture of what the program shows on its screen, if it does."""
    mains = [run for run in state.work.runs if run.purpose == "run" and run.mode == "screen"]
    left = mains[-1].result.changes if mains else ()
    return tuple(one.sha256 for one in left if one.path == Screen().picture and one.sha256)
