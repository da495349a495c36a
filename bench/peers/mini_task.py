"""One task done by mini-swe-agent, for `bench/outcome.py`; runs in an environment of its own.

Reads the goal from stdin, works in the current folder, and prints what the model says. URL and MODEL are in the
environment.
"""

import os
import sys
from pathlib import Path

import yaml
from minisweagent import package_dir
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

ASK = "{goal}\n\nWrite it into solution.py in the current folder."


class ShownModel(LitellmTextbasedModel):
    """Where no command writes a file, the last block of code that was said counts, as for everybody."""

    def _query(self, messages, **options):
        response = super()._query(messages, **options)
        print(response.choices[0].message.content or "", flush=True)
        return response


config = yaml.safe_load(Path(package_dir / "config" / "mini_textbased.yaml").read_text(encoding="utf-8"))
model = ShownModel(
    model_name=f"openai/{os.environ['MODEL']}",
    model_kwargs={"api_base": os.environ["URL"], "api_key": "none", "drop_params": True},
    cost_tracking="ignore_errors",
    **{name: value for name, value in config["model"].items() if name.endswith("_template")},
)
options = {name: config["agent"][name] for name in ("system_template", "instance_template")}
agent = DefaultAgent(model, LocalEnvironment(**config["environment"], timeout=20), **options, step_limit=12)
agent.run(ASK.format(goal=sys.stdin.read()))
