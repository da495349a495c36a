"""The floor of a person's proxy and its assistants: whoever was asked answers, and then whoever asked."""

from septet.domain.answers import Output, Traced, traced
from septet.domain.events import AnswerGiven, PersonSpoke, RunFinished, ToolAnswered, ToolCalled
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import BadConfig
from septet.team.briefings import Sources, found_section
from septet.team.limits import at_most
from septet.team.moves import End, Floor, Move, Speak
from septet.team.surroundings import surroundings
from septet.team.threads import PERSON, conversation, next_recipient, sending, served

CERTAIN = "CERTAIN:"
SCRIPT = "script "
INSTRUCTIONS = {
    "proxy": """\
You are the user proxy: you talk with the person and pass the work on to the assistants with SendMessage. Say
exactly what is wanted, and keep on until the work is complete, an error is reported, or you are certain. Only
then write to the person, without a tool call; it is the one answer that the person sees. A remark on the way is
not shown. If you can answer with certainty without any assistant, begin with CERTAIN: .
Use only numbers that a program printed, exactly as it printed them.
""",
    "coder": """\
You are the code assistant. You write Python files with File and run them with ExecutePyFile, in a workspace
without network. Files of the person's that are there can be read with File, edited and run too. Print what you
find, with words beside every number. Standard library only, unless you know that a package is there. Data files
are read only: open them at the paths that you are told. When a program fails, mend it and run it again. Answer
without a tool call when the work is complete or cannot be done; the answer goes to whoever asked you. Claim
nothing that has not been run.
""",
}


def direct(state: State) -> Move:
    """The deepest open question first; the person's own is answered last, once."""
    if state.answered is not None:
        return End(reason="answered")
    return Speak(speaker=next_recipient(state) or head_of(state.team))


def assisting(team: TeamSpec, budget: Budget) -> Floor:
    if team.stepwise:
        raise BadConfig(
            f"the team '{team.name}' cannot be stepped: its proxy speaks for itself", "leave out --step"
        )
    return at_most(budget.rounds, direct)


def head_of(team: TeamSpec) -> str:
    """Who talks with the person."""
    return next((member.name for member in team.members if member.role == "proxy"), team.members[0].name)


def recipients(team: TeamSpec, name: str) -> list[str]:
    """Whom a member may write to: everybody but itself and the proxy."""
    return [member.name for member in team.members if member.name != name and member.role != "proxy"]


def briefed(member: RoleSpec, state: State, sources: Sources) -> tuple[Message, ...]:
    """A stable head with the data cards, then the thread."""
    cards = [f"# Data file {card.path}\n{card.card}" for card in state.cards]
    head = "\n\n".join(
        filter(None, [INSTRUCTIONS.get(member.role, ""), member.instructions, *surroundings(state), *cards])
    )
    messages = (Message(role="system", text=head), *conversation(state, member.name))
    if member.role != "proxy" and (found := found_section(state, sources)):
        messages = (*messages, Message(role="user", text="\n".join(found)))
    if state.refused is not None and state.refused.role == member.name:
        reason = f"Your last reply could not be used: {state.refused.reason}"
        messages = (*messages, Message(role="user", text=reason))
    return messages


def answer(state: State, name: str, text: str) -> AnswerGiven | Refusal:
    """The words for the person, if the rule allows them: complete, an error reported, or certain."""
    certain = text.startswith(CERTAIN)
    asked = replies(state, name)
    if not text.strip():
        return Refusal(reason="the answer is empty")
    if not asked and not certain:
        reason = "nobody has been asked yet: use SendMessage, or begin with CERTAIN: if you are"
        return Refusal(reason=reason)
    words = text.removeprefix(CERTAIN).strip()
    found = grounded(state, words)
    if found.unfounded:
        numbers = ", ".join(found.unfounded)
        return Refusal(reason=f"no program printed {numbers}: use only numbers that stand in an output")
    ground = "certain" if not asked else "error" if asked[-1].failed else "complete"
    return AnswerGiven(by=name, text=words, ground=ground, sources=found.sources)


def replies(state: State, name: str) -> list[ToolAnswered]:
    """What recipients answered since the person's last question."""
    sent: set[str] = set()
    found: list[ToolAnswered] = []
    for said in state.messages:
        if isinstance(said, PersonSpoke):
            found = []
        elif isinstance(said, ToolCalled) and said.by == name and sending(said):
            sent.add(said.id)
        elif isinstance(said, ToolAnswered) and said.id in sent:
            found.append(said)
    return found


def grounded(state: State, words: str) -> Traced:
    """Where the numbers come from; not asked where there are neither data nor runs."""
    outputs = [
        Output(script=said.purpose.removeprefix(SCRIPT), text=said.result.stdout)
        for said in state.messages
        if isinstance(said, RunFinished)
    ]
    if not state.data and not outputs:
        return Traced()
    asked = [said.text for said in state.messages if isinstance(said, PersonSpoke)]
    return traced(words, outputs, given="\n".join([state.goal, *asked]))


def partner(state: State, name: str) -> str:
    now = served(state, name)
    return now.by if now else PERSON
