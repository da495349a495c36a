"""One task done by smolagents' CodeAgent, for `bench/outcome.py`; runs in an environment of its own.

Reads the goal from stdin, prints the code of each step when it comes, and then the final answer. URL and MODEL are in
the environment.
"""

import os
import sys

from smolagents import CodeAgent, LogLevel, OpenAIModel

ASK = """{goal}

Write the function, try it on a few inputs, and give the source code of the finished function, as a string, to
final_answer."""


def show(step: object, agent: object = None) -> None:
    """The code of a step; where it has the wrong form for smolagents, the blocks that were said all the same."""
    said = getattr(step, "model_output", None)
    if code := getattr(step, "code_action", None):
        print(f"```python\n{code}\n```", flush=True)
    elif isinstance(said, str) and "```" in said:
        print(said + ("\n```" if said.count("```") % 2 else ""), flush=True)


model = OpenAIModel(
    os.environ["MODEL"], api_base=os.environ["URL"], api_key="none", flatten_messages_as_text=True
)
agent = CodeAgent(tools=[], model=model, max_steps=6, verbosity_level=LogLevel.OFF, step_callbacks=[show])
try:
    final = agent.run(ASK.format(goal=sys.stdin.read()))
except Exception as error:  # its own errors: what it had written by then counts
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    final = ""
if isinstance(final, str) and "def " in final:
    print(final if "```" in final else f"```python\n{final}\n```")
