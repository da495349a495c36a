"""OpenAI's own client drives a chat over a real socket, by both of its APIs, beside the page."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from openai import AuthenticationError, BadRequestError, NotFoundError, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from web.serving import SMALL, Web, kinds

TOKEN = "a-token-of-the-tests"
GOAL = "add two numbers"


def serve(folder: Path, model: str) -> Web:
    (folder / "token").write_text(TOKEN)
    served = Web(folder / "home", model, 0, "--token-file", str(folder / "token"))
    served.token = TOKEN
    return served


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    served = serve(tmp_path_factory.mktemp("openai"), SMALL)
    yield served
    served.stop()


@pytest.fixture
def client(web: Web) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{web.origin}/v1", api_key=TOKEN, max_retries=0, timeout=120) as opened:
        yield opened


def chat_in(text: str) -> str:
    found = re.search(r"`chat (\S+) · \d+`$", text)
    assert found, text
    return found[1]


def log_of(web: Web, chat: str) -> list[dict[str, object]]:
    lines = web.get(f"/api/chats/{chat}/events").body.splitlines()
    return [msgspec.json.decode(line, type=dict[str, object]) for line in lines]


def count(web: Web, chat: str, kind: str) -> int:
    return kinds(log_of(web, chat)).count(kind)


def test_models_are_the_teams(client: OpenAI) -> None:
    assert {"iterate", "pair", "assistant"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("iterate").id == "iterate"


def test_a_chat_by_completions_is_asked_streamed_and_bound_by_its_own_words(web: Web, client: OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": GOAL}]
    first = client.chat.completions.create(model="iterate", messages=messages)
    asked = first.choices[0].message.content or ""
    assert "add(a, b) gives the sum" in asked
    assert "Approve this plan?" in asked
    assert first.choices[0].finish_reason == "stop"
    assert first.usage is not None
    messages.append({"role": "assistant", "content": asked})
    messages.append({"role": "user", "content": "yes"})
    stream = client.chat.completions.create(
        model="iterate", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "done" in text
    assert "✓ P1" in text
    assert "it subtracts" in text
    assert chunks[-1].usage is not None
    chat = chat_in(text)
    assert chat == chat_in(asked)
    assert count(web, chat, "plan_approved") == 1
    again = client.chat.completions.create(model="iterate", messages=messages)
    assert again.choices[0].message.content == text, (
        "the same words get the same turn, and nothing is done twice"
    )
    assert count(web, chat, "plan_approved") == 1


def test_a_chat_by_responses_is_asked_streamed_and_bound_by_ids(web: Web, client: OpenAI) -> None:
    first = client.responses.create(model="iterate", input=GOAL, instructions="Be brief.")
    assert first.status == "completed"
    assert "Approve this plan?" in first.output_text
    with client.responses.stream(model="iterate", input="yes", previous_response_id=first.id) as stream:
        kinds_seen = [event.type for event in stream]
        last = stream.get_final_response()
    assert kinds_seen[0] == "response.created"
    assert kinds_seen[-1] == "response.completed"
    assert "done" in last.output_text
    chat = chat_in(last.output_text)
    assert chat == chat_in(first.output_text)
    assert "Be brief." in str(log_of(web, chat)[0])
    for response in (first, last):
        past = client.responses.retrieve(response.id)
        assert (past.output_text, past.status) == (response.output_text, "completed")


def test_what_is_sent_has_all_that_the_types_of_the_client_promise(client: OpenAI) -> None:
    """The client itself checks nothing that it gets."""
    events = list(client.responses.create(model="plan", input=GOAL, stream=True))
    chunks = list(
        client.chat.completions.create(
            model="plan",
            messages=[{"role": "user", "content": GOAL}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    for sent in (*events, *chunks):
        type(sent).model_validate(sent.to_dict(), strict=True)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    order = list(dict.fromkeys(event.type for event in events))
    item, part, text = "response.output_item", "response.content_part", "response.output_text"
    begun = ["response.created", "response.in_progress", f"{item}.added", f"{part}.added"]
    ended = [f"{text}.done", f"{part}.done", f"{item}.done", "response.completed"]
    assert order == [*begun, f"{text}.delta", *ended]
    assert all("usage" in chunk.to_dict() for chunk in chunks), "null until the last"


def test_what_the_page_answered_is_seen_and_no_answer_counts_for_another_question(
    web: Web, client: OpenAI
) -> None:
    first = client.responses.create(model="iterate", input=GOAL)
    chat = chat_in(first.output_text)
    web.act(chat, "say", text="Please use another name.")
    until_asked_again(web, chat)
    late = client.responses.create(model="iterate", input="make it red", previous_response_id=first.id)
    assert "not taken as an answer" in late.output_text
    assert "Approve this plan?" in late.output_text
    assert count(web, chat, "plan_proposed") == 2


SLOW = """
turns:
- role: planner
  say: |
    1. It waits
       check: command python wait.py => done
    run: python wait.py
- role: coder
  say: It waits.
  files:
    wait.py: |
      import time
      time.sleep(50)
      print("done")
"""


def test_a_client_that_leaves_pauses_the_chat_and_its_repeated_request_goes_on(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW)
    web = serve(tmp_path, f"scripted:{tmp_path / 'slow.yaml'}")
    with OpenAI(base_url=f"{web.origin}/v1", api_key=TOKEN, max_retries=0, timeout=120) as client:
        first = client.responses.create(model="iterate", input="wait")
        chat = chat_in(first.output_text)
        for retry in ("0", "1"):
            headers = {"x-stainless-retry-count": retry}
            stream = client.responses.create(
                model="iterate",
                input="yes",
                previous_response_id=first.id,
                stream=True,
                extra_headers=headers,
            )
            with stream:
                next(event for event in stream if event.type == "response.output_text.delta")
            until_paused(web, chat)
            assert count(web, chat, "chat_ended") == 0
            assert count(web, chat, "plan_approved") == 1
    web.stop()


def until_paused(web: Web, chat: str) -> None:
    """Until the server says that it conducts the chat no more."""
    with web.watch(chat) as socket:
        while b'"conducted":false' not in socket.recv(60, decode=False):
            pass


def until_asked_again(web: Web, chat: str) -> None:
    """Until the log has another plan, and waits for the person."""
    with web.watch(chat) as socket:
        while kinds(log_of(web, chat))[-1] != "turn_opened" or count(web, chat, "plan_proposed") < 2:
            socket.recv(60)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
    ],
)
def test_whoever_is_not_let_in_gets_an_error_of_the_protocol(
    web: Web, headers: dict[str, str], status: int
) -> None:
    answer = web.ask("POST", "/v1/chat/completions", b"{}", headers)
    assert answer.status == status
    assert "message" in msgspec.json.decode(answer.body)["error"]


def test_requests_that_are_wrong_get_the_errors_that_the_client_knows(web: Web, client: OpenAI) -> None:
    with pytest.raises(NotFoundError, match="no team 'nobody'"):
        client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": GOAL}])
    with pytest.raises(BadRequestError, match="no message of the user"):
        client.chat.completions.create(model="iterate", messages=[{"role": "system", "content": "x"}])
    with pytest.raises(NotFoundError):
        client.responses.create(model="iterate", input="yes", previous_response_id="resp_")
    with pytest.raises(BadRequestError, match="no chat"):
        client.responses.create(model="iterate", input="yes", previous_response_id="resp_nobody-abc.12")
    with pytest.raises(NotFoundError):
        client.embeddings.create(model="iterate", input="x")
    with pytest.raises(AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    for body in (
        b"",
        b"[]",
        b"{",
        b'{"model": 3}',
        b"\xff",
        b'{"model":"iterate","messages":[]}',
        b"[" * 100_000,
    ):
        answer = web.ask("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {TOKEN}"})
        assert answer.status == 400, body[:20]
    huge = web.ask("POST", "/v1/responses", b" " * 1_100_000, {"Authorization": f"Bearer {TOKEN}"})
    assert huge.status == 413
