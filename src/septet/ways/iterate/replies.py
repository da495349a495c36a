"""Planner, coder and reviewer: how each is asked, and what its reply becomes: a plan, a version, a review."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from septet.agents.replies import PartRefused, one_answer_agent
from septet.agents.reply_files import files_sent, keep_file, sources
from septet.domain.events import Event, ModelAnswered, PlanProposed, ReviewGiven, VersionWritten
from septet.domain.files import tree_of
from septet.domain.messages import Message
from septet.domain.plans import Plan, Refusal, parse_amendment, parse_plan
from septet.domain.reviews import FindingAnswer
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig
from septet.ports import Agent, Blobs, Bus, Model, Record
from septet.team.challenges import (
    amendment_refusal,
    challenge_refusal,
    parse_challenge_decision,
    plan_with_other_check,
    read_challenge,
    unplanned_wishes,
)
from septet.team.confirmations import calls_to_confirm, special_cases_to_confirm
from septet.team.evidence import remarks_in_turn, rests_on_own_tests, shortcomings
from septet.team.layouts import deleted_after
from septet.team.reviews import answers_to, judge_review, parse_review, regression_findings, unique_findings
from septet.team.small_form import (
    is_json_reply,
    parse_small_files,
    parse_small_plan,
    parse_small_review,
    plan_from_goal,
    review_from_evidence,
)
from septet.ways.iterate.briefing import briefing

Interpret = Callable[[State, str, Blobs], Awaitable[Event | Refusal]]


def role_agent(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs) -> Agent:
    """An agent for a role that speaks; where evidence speaks for itself, a small reviewer need not."""
    if member.role not in INTERPRETERS:
        raise BadConfig(f"the member '{member.name}' has the role '{member.role}', which does not speak")
    interpret = INTERPRETERS[member.role]

    async def brief(state: State) -> tuple[Message, ...]:
        return briefing(member, state, await sources(state, blobs))

    async def settle(state: State, text: str) -> Event | Refusal:
        return await interpret(state, text, blobs)

    usual = one_answer_agent(member, model, bus, brief, settle)

    async def turn(state: State, record: Record) -> Event | None:
        is_open = state.floor.turn is not None and not state.floor.turn.closed
        evident = evident_event(member, state) if member.form == "small" and is_open else None
        return evident or await usual(state, record)

    return turn


def evident_event(member: RoleSpec, state: State) -> Event | None:
    """What a small member need not be asked for."""
    if member.role == "reviewer":
        return review_from_evidence(state)
    plan = plan_from_goal(state) if member.role == "planner" and not state.team.strict else None
    return PlanProposed(plan=plan) if plan else None


async def propose_plan(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    plan = plan_with_other_check(state, text)
    if plan is None and (decision := parse_challenge_decision(state, "planner", text)):
        return decision
    plan = plan or read_plan(state, text)
    asked = tuple(calls_to_confirm(state))
    if not isinstance(plan, Refusal):
        refusal = strict_refusal(state, plan) or amendment_refusal(state, plan)
        if refusal is None:
            return PlanProposed(plan=plan, asked=asked)
        plan = refusal
    unchanged = plan_without_examples(state)
    return PlanProposed(plan=unchanged, asked=asked) if unchanged else plan


def plan_without_examples(state: State) -> Plan | None:
    """The plan as it is, if its planner was asked for no more than examples and twice gave none that can be used."""
    asked = calls_to_confirm(state) and not special_cases_to_confirm(state) and not unplanned_wishes(state)
    return state.plan.current if asked and state.talk.refused_reply is not None else None


def read_plan(state: State, text: str) -> Plan | Refusal:
    again = state.talk.refused_reply is not None
    if is_json_reply(text):
        return parse_small_plan(state.goal, text, lenient=again)
    adds = unplanned_wishes(state) or calls_to_confirm(state)
    current = state.plan.current if adds else None
    return parse_amendment(text, current) if current else parse_plan(text)


def strict_refusal(state: State, plan: Plan) -> Refusal | None:
    """Refuse a plan of a strict team with requirements that only future tests by the coder would check."""
    if not state.team.strict:
        return None
    proposed = replace(state, plan=replace(state.plan, current=plan))
    weak = [item.id for item in plan.items if rests_on_own_tests(proposed, item)]
    if not weak:
        return None
    reason = f"{', '.join(weak)}: tests that the coder writes prove nothing; give examples or commands"
    return Refusal(reason=reason)


def last_reply(state: State, member: str, skip: str) -> str:
    """The member's reply before its newest one."""
    spoken = [
        said.answer.text
        for said in state.talk.messages
        if isinstance(said, ModelAnswered) and said.role == member
    ]
    return next((text for text in reversed(spoken) if text != skip), "")


async def write_version(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    """A version from the files of a reply; files that were not sent stay as they were."""
    before = {file.path: file for file in state.work.files}
    small = is_small_member(state, "coder")
    refused = state.talk.refused_reply
    sent = (
        parse_small_files(state, text)
        if small
        else await files_sent(state, text, blobs, refused, parses=True)
    )
    if isinstance(sent, Refusal):
        only_words = not isinstance(sent, PartRefused)
        return (read_challenge(state, "coder", text) if only_words else None) or sent
    earlier = last_reply(state, "coder", skip=text) if refused else ""
    answers = answers_to(state.work.reviews[-1] if state.work.reviews else None, earlier, text)
    silence = unanswered_refusal(state, text, answers)
    if silence := silence or (None if refused else challenge_refusal(state, text)):
        return PartRefused(
            reason=f"{silence.reason}\n\nThe files are kept: they need not come again.",
            kept=tuple([await keep_file(file, blobs) for file in sent]),
        )
    files = {**before, **{file.path: await keep_file(file, blobs) for file in sent}}
    ordered = tuple(files[path] for path in sorted(files))
    note = "" if small else text.split("```", 1)[0].strip()
    number, tree = len(state.work.versions) + 1, tree_of(ordered)
    deleted = deleted_after(state, ordered)
    return VersionWritten(
        number=number, files=ordered, deleted=deleted, tree=tree, note=note, answers=answers
    )


def unanswered_refusal(state: State, text: str, answers: tuple[FindingAnswer, ...]) -> Refusal | None:
    """Findings that the coder says nothing to are asked about once; who replies by a form cannot say it."""
    silent = [one.finding for one in answers if one.answer == "unanswered"]
    if (
        not silent
        or is_json_reply(text)
        or is_small_member(state, "coder")
        or state.talk.refused_reply is not None
    ):
        return None
    lines = f"'{silent[0]}: fixed, …' or '{silent[0]}: refused, because …'"
    return Refusal(reason=f"no answer to {', '.join(silent)}; write {lines} for each")


async def give_review(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    """A review from a reply; evidence overrules the reviewer's verdict, and that is recorded."""
    code = "\n".join((await sources(state, blobs)).values())
    again = state.talk.refused_reply is not None
    review = parse_small_review(text, code) if is_json_reply(text) else parse_review(text, again=again)
    if isinstance(review, Refusal):
        return review
    assert state.work.version is not None, "the floor gives the reviewer a version to look at"
    verdict, overruled = judge_review(state, review)
    return ReviewGiven(
        version=state.work.version.number,
        tree=state.work.version.tree,
        verdict=verdict,
        findings=unique_findings([*review.findings, *regression_findings(state)]),
        overruled=overruled,
        remarks=tuple(remark.text for remark in remarks_in_turn(state)),
        green=not shortcomings(state),
    )


INTERPRETERS: dict[str, Interpret] = {
    "planner": propose_plan,
    "coder": write_version,
    "reviewer": give_review,
}


def is_small_member(state: State, role: str) -> bool:
    member = state.team.member(role)
    return member is not None and member.form == "small"
