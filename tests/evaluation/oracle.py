"""A model that knows the answers to the bundled suite, in the small form."""

from septet.evaluation.suites import EvalTask
from septet.testing.replies import ReceivedRequest, Reply, Script

TEAM = """\
name: helped
members:
  - {role: planner, form: small}
  - {role: coder, form: small, candidates: 4}
  - {role: runner}
  - {role: reviewer, form: small}
"""


def oracle(tasks: list[EvalTask], wrong: dict[str, str] | None = None) -> Script:
    """Says the solution of whatever it is asked for; `wrong` are other programs for some tasks."""
    programs = {task.id: task.solution for task in tasks} | (wrong or {})

    def answer(seen: ReceivedRequest) -> Reply:
        said = "\n".join(str(one.get("content", "")) for one in seen.messages)
        task = next(one for one in tasks if one.goal in said)
        if "response_format" in seen.fields:
            return Reply(text=f'{{"file": "{task.entry}.py", "kind": "function", "examples": []}}', piece=200)
        return Reply(text=f"```python\n{programs[task.id]}```\n", piece=500)

    return answer
