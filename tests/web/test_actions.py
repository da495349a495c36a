"""What the person does on the page: an approval names exactly the plan or the version that was seen."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, version

from septet.domain.events import PlanProposed, Recorded, WorkAccepted
from septet.domain.plans import plan_digest
from septet.errors import BadUsage, Conflict
from septet.web.actions import acceptance, approval, digest_at

LOG = [
    Recorded(chat="c", seq=1, at=0.0, event=STARTED),
    Recorded(chat="c", seq=12, at=0.0, event=PlanProposed(plan=PLAN)),
]


def test_a_plan_is_found_at_its_own_sequence_only() -> None:
    assert digest_at(LOG, 12) == plan_digest(PLAN)
    for seq in (0, 1, 5, 13):
        with pytest.raises(BadUsage, match=f"no plan at {seq} "):
            digest_at([one for one in LOG if one.seq > seq - 1], seq)


def test_an_approval_of_a_plan_that_has_changed_since_is_refused() -> None:
    altered = replace(PLAN, run="rm -r .")
    state = chat([STARTED, PlanProposed(plan=PLAN), PlanProposed(plan=altered)])
    assert approval(state, plan_digest(altered)).plan == plan_digest(altered)
    for digest in (plan_digest(PLAN), ""):
        with pytest.raises(Conflict, match="the plan has changed"):
            approval(state, digest)


def test_an_acceptance_of_an_older_version_is_refused() -> None:
    state = chat([*planned(), *version(1, "a"), *version(2, "b")])
    assert state.work.version is not None
    newest = WorkAccepted(tree=state.work.version.tree)
    assert acceptance(state, newest.tree) == acceptance(state, "") == newest
    with pytest.raises(Conflict, match="a newer version"):
        acceptance(state, "a")
    with pytest.raises(BadUsage, match="no version"):
        acceptance(chat(planned()), "")
