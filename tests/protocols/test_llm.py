"""A chat client that knows nothing of Septet, `llm`, drives a chat by the OpenAI endpoint, streamed and not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from protocols.test_mcp_server import QUICK, TOKEN, served

MODELS = """- model_id: septet
  model_name: iterate
  api_base: {origin}/v1
  api_key_name: septet
"""


def test_llm_begins_a_chat_and_its_next_message_approves_the_plan(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("llm")
    if not program.exists():
        pytest.skip("llm is not installed")
    with served(tmp_path, QUICK) as web:
        user = tmp_path / "llm"
        user.mkdir()
        (user / "extra-openai-models.yaml").write_text(MODELS.format(origin=web.origin))

        def llm(*words: str) -> str:
            done = subprocess.run(
                [str(program), *words],
                env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LLM_USER_PATH": str(user)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        llm("keys", "set", "septet", "--value", TOKEN)
        asked = llm("-m", "septet", "--no-stream", "greet")
        assert "1. It greets" in asked
        assert "Approve this plan?" in asked
        done = llm("-c", "yes")
        assert "verdict: accept" in done
        assert "✓" in done
        assert len(web.get("/api/chats").body.split(b'"chat":')) == 2, "one chat"
