"""What the person does on the page: an approval names exactly the plan that was seen."""

import pytest
from team.states import PLAN, STARTED

from septet.domain.events import PlanProposed, Recorded
from septet.domain.plans import plan_digest
from septet.errors import BadUsage
from septet.web.actions import digest_at

LOG = [
    Recorded(chat="c", seq=1, at=0.0, event=STARTED),
    Recorded(chat="c", seq=12, at=0.0, event=PlanProposed(plan=PLAN)),
]


def test_a_plan_is_found_at_its_own_sequence_only() -> None:
    assert digest_at(LOG, 12) == plan_digest(PLAN)
    for seq in (0, 1, 5, 13):
        with pytest.raises(BadUsage, match=f"no plan at {seq} "):
            digest_at([one for one in LOG if one.seq > seq - 1], seq)
