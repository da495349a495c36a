"""What the runner finds out about a version: a real sandbox, no model."""

from collections.abc import Mapping
from pathlib import Path

from septet.agents.run_context import RunContext
from septet.agents.runner import rehearse_version
from septet.domain.events import ChatStarted, PlanApproved, PlanProposed, Recorded, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.plans import Plan, plan_digest
from septet.domain.reduce import fold
from septet.domain.runs import Limits
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.runtime.bus import MemoryBus
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import Workspace


async def examine(
    tmp_path: Path, cache: Path, files: Mapping[str, str], plan: Plan, limits: Limits | None = None
) -> State:
    """The state after the runner has run and checked these files as the first version of an approved plan."""
    team = TeamSpec(name="t", members=(), limits=limits or Limits())
    events = [
        ChatStarted(goal="g", team=team, workspace=str(tmp_path / "work")),
        PlanProposed(plan=plan),
        PlanApproved(plan=plan_digest(plan)),
    ]
    state = fold(
        Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, start=1)
    )
    blobs = MemoryBlobs()
    refs = tuple(
        [
            FileRef(path=path, sha256=await blobs.put(text.encode()), size=len(text))
            for path, text in files.items()
        ]
    )
    sandbox = JobRunner(Bubblewrap.detect(), (Interpreters(cache).prepare,))
    version = VersionWritten(number=1, files=refs, tree=tree_of(refs))
    return await rehearse_version(
        state, version, RunContext(Workspace(tmp_path / "work"), sandbox, blobs, MemoryBus())
    )
