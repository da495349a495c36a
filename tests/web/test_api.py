"""The server over plain sockets: who gets in, what it answers, and that no request makes it stumble."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from cli.commands import Septet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web.serving import PATIENCE, SCRIPTS, Answer, Web, events_of, kinds
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from septet.web.auth import LINK_SECONDS, is_valid_link, sign_link


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, str]]:
    """A server with one chat that has ended."""
    web = Web(tmp_path_factory.mktemp("api") / "home")
    chat = web.begin(yes=True)
    web.until(chat, "chat_ended")
    yield web, chat
    web.stop()


def test_the_token_opens_one_browser_once(web: Web) -> None:
    assert web.ask("GET", "/").status == 401
    assert web.ask("GET", "/?token=wrong").status == 401
    first = web.ask("GET", f"/chat/x?token={web.token}&a=1")
    assert (first.status, first.headers["location"]) == (303, "/chat/x?a=1")
    stamp = first.headers["set-cookie"]
    assert "HttpOnly" in stamp
    assert "SameSite=Strict" in stamp
    assert web.ask("GET", f"/?token={web.token}").status == 401
    cookie = stamp.partition(";")[0]
    assert web.ask("GET", "/", headers={"Cookie": cookie}).status == 200
    assert web.ask("GET", "/", headers={"Cookie": cookie + "0"}).status == 401


def test_a_link_lets_one_more_browser_in_once(web: Web) -> None:
    made = Septet(web.home)("web", "--link", "--port", str(web.port))
    assert made.returncode == 0, made.stderr
    path = made.stdout.strip().removeprefix(web.origin)
    forged = f"{path[:-1]}{'0' if path[-1] != '0' else '1'}"
    assert web.ask("GET", forged).status == 401
    first = web.ask("GET", path)
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"].partition(";")[0]
    assert web.ask("GET", "/", headers={"Cookie": cookie}).status == 200
    assert web.ask("GET", path).status == 401


@pytest.mark.parametrize(
    ("token", "valid"),
    [
        (sign_link(b"k", 1000.0), True),
        (sign_link(b"k", 1000.0 - LINK_SECONDS), False),
        (sign_link(b"other", 1000.0), False),
        (sign_link(b"k", 1000.0).replace("link.1600", "link.9999"), False),
        ("link.x.y.z", False),
        ("link.", False),
    ],
    ids=["signed", "old", "signed by another key", "altered", "not signed", "empty"],
)
def test_a_link_is_valid_for_ten_minutes_if_our_key_signed_it(token: str, valid: bool) -> None:
    assert is_valid_link(b"k", token, 1000.0) is valid


def test_a_link_needs_a_server_that_runs(tmp_path: Path) -> None:
    done = Septet(tmp_path / "home")("web", "--link", "--port", "1")
    assert done.returncode == 2
    assert "no server answers on 127.0.0.1:1" in done.stderr


def test_who_is_not_let_in_or_lost_gets_a_page_with_one_style_and_no_script(done: tuple[Web, str]) -> None:
    web, _ = done
    for answer, status, words in (
        (web.ask("GET", "/"), 401, b"septet web --link"),
        (web.ask("GET", "/nowhere", headers={"Cookie": web.cookie}), 404, b"There is no such page"),
    ):
        assert answer.status == status
        assert words in answer.body
        assert b"<style>" in answer.body
        policy = answer.headers["content-security-policy"]
        assert "style-src 'sha256-" in policy
        assert "unsafe" not in policy
        assert "script-src" not in policy
    lost = web.ask("GET", "/api/nowhere", headers={"Cookie": web.cookie})
    assert (lost.status, lost.json()["error"]) == (404, "there is no such address")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "localhost.evil"]
)
def test_another_host_name_is_refused(done: tuple[Web, str], host: str) -> None:
    web, _ = done
    assert web.ask("GET", "/api/chats", headers={"Cookie": web.cookie, "Host": host}).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_another_origin_may_neither_read_nor_act(done: tuple[Web, str], origin: str) -> None:
    web, chat = done
    headers = {"Cookie": web.cookie, "Origin": origin}
    assert web.ask("GET", "/api/chats", headers=headers).status == 403
    assert web.ask("POST", f"/api/chats/{chat}/acts", b'{"act": "stop"}', headers).status == 403
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{web.port}/api/live", additional_headers=headers)
    assert refused.value.response.status_code == 403


def test_who_acts_must_say_where_from(done: tuple[Web, str]) -> None:
    web, chat = done
    assert web.ask("POST", f"/api/chats/{chat}/acts", b"{}", {"Cookie": web.cookie}).status == 403
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{web.port}/api/live", additional_headers={"Cookie": web.cookie})
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{web.port}/api/live", additional_headers={"Origin": web.origin})


def test_every_answer_is_fenced(done: tuple[Web, str]) -> None:
    web, chat = done
    for path in ("/", f"/chat/{chat}", "/api/chats", "/nowhere", "/assets/index.html"):
        headers = web.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../../../../etc/passwd",
        "/assets/%2e%2e/%2e%2e/application.py",
        "/assets/..%2f..%2fdoor.py",
        "/artefacts/../../septet.db/x",
        "/artefacts/" + "0" * 64 + "/x",
        "/artefacts/" + quote("../" * 20, safe="") + "/x",
        "/artefacts/" + "z" * 64 + "/x",
        "/api/chats/" + quote("../../septet.db", safe=""),
        "/api/chats/..%2f..%2fx/events",
        "/api/chats/nobody",
        "/api/chats/nobody/versions/v1.zip",
        "/chat/../api/secret",
    ],
)
def test_nothing_lies_outside(done: tuple[Web, str], path: str) -> None:
    web, _ = done
    assert web.get(path).status in (404, 200 if path.startswith("/chat/") else 404)
    assert b"root:" not in web.get(path).body


def test_a_body_over_the_limit_is_refused(done: tuple[Web, str]) -> None:
    web, _ = done
    answer = web.post("/api/chats", b'{"goal": "' + b"x" * (2 << 20) + b'"}')
    assert answer.status == 413
    assert answer.json()["error"] == "the request body is larger than 1,048,576 bytes"


def test_what_is_wrong_is_said_in_one_sentence(done: tuple[Web, str]) -> None:
    web, chat = done
    for path, body, words in [
        ("/api/chats", {"goal": " "}, "the goal is empty"),
        ("/api/chats", {"goal": "x", "team": "nobody"}, "unknown team"),
        ("/api/chats", {"demo": "clok"}, "did you mean 'clock'"),
        ("/api/chats", {"goal": "x", "model": "scripted:/nowhere.yaml"}, "cannot be read"),
        ("/api/chats", {"goal": "x", "wrong": 1}, "the request is not valid"),
        (
            "/api/chats",
            {"goal": "x", "team": "pair", "consult": True},
            "has no reviews, so it cannot ask you before one",
        ),
        (f"/api/chats/{chat}/acts", {"act": "fly"}, "the request is not valid"),
        (f"/api/chats/{chat}/acts", {"act": "approve", "seq": 1}, "there is no plan at 1"),
        (f"/api/chats/{chat}/acts", {"act": "approve", "plan": "f" * 64}, "the plan has changed"),
        (f"/api/chats/{chat}/acts", {"act": "restore", "version": "v9"}, "has no version"),
        (f"/api/chats/{chat}/acts", {"act": "edit", "text": "no plan"}, "this is not a plan"),
        ("/api/chats/nobody/acts", {"act": "stop"}, "there is no chat"),
    ]:
        answer = web.post(path, body)
        assert 400 <= answer.status < 500
        told = msgspec.json.decode(answer.body, type=dict[str, str])
        assert words in f"{told['error']}: {told['remedy']}", told


def test_versions_differences_archives_and_exports(done: tuple[Web, str]) -> None:
    web, chat = done
    assert b"+    return a + b" in web.get(f"/api/chats/{chat}/diff?old=v1&new=v2").body
    with zipfile.ZipFile(io.BytesIO(web.get(f"/api/chats/{chat}/versions/v1.zip").body)) as archive:
        assert archive.namelist() == ["add.py", "test_add.py"]
        assert b"a - b" in archive.read("add.py")
    assert web.get(f"/api/chats/{chat}").json()["status"] == "done"
    lines = web.get(f"/api/chats/{chat}/events?after=3").body.splitlines()
    assert msgspec.json.decode(lines[0], type=dict[str, object])["seq"] == 4
    assert web.get(f"/api/chats/{chat}/export/jsonl").body.count(b"\n") == len(lines) + 3
    found = msgspec.json.decode(web.get("/api/search?q=subtr").body, type=list[dict[str, object]])
    assert {hit["chat"] for hit in found} == {chat}
    assert any("subtracts" in str(hit["words"]) for hit in found)


def test_a_watcher_gets_history_then_live_without_gap_or_double(done: tuple[Web, str]) -> None:
    web, _ = done
    chat = web.begin()
    first = web.until(chat, "plan_proposed")
    plan = next(event["seq"] for event in first if event["type"] == "septet.plan_proposed")
    assert web.act(chat, "approve", seq=plan).status == 200
    middle = web.until(chat, "version_written", after=len(first))
    late = web.until(chat, "chat_ended")
    assert [event["seq"] for event in late] == list(range(1, len(late) + 1))
    assert late[: len(first)] == first
    assert late[len(first) : len(first) + len(middle)] == middle


def test_a_chat_is_forked_restored_and_asked_for_more(done: tuple[Web, str]) -> None:
    web, chat = done
    made = web.act(chat, "fork", version="v1")
    fork = str(made.json()["chat"])
    assert kinds(events(web, fork))[-1] == "version_written"
    assert web.act(fork, "resume").status == 200
    assert kinds(web.until(fork, "chat_ended")).count("version_written") == 2
    assert web.act(fork, "restore", version="v1").status == 200
    log = events(web, fork)
    assert kinds(log)[-2:] == ["decision_recorded", "version_written"]
    assert web.act(fork, "stop").status == 200


def test_more_words_to_a_talk_that_has_ended_give_it_as_many_rounds_again(done: tuple[Web, str]) -> None:
    web, _ = done
    talk = f"scripted:{SCRIPTS / 'talk.yaml'}"
    chat = web.begin("a poem", team="writer-editor", model=talk, rounds=2)
    first = web.until(chat, "chat_ended")
    assert web.act(chat, "say", text="and now in blue").status == 200
    second = web.until(chat, "chat_ended", after=int(str(first[-1]["seq"])))
    spoken = kinds(first).count("model_answered")
    assert spoken > 0
    assert kinds(second).count("model_answered") == spoken


def events(web: Web, chat: str) -> list[dict[str, object]]:
    with web.watch(chat) as socket:
        found: list[dict[str, object]] = []
        while '"kind":"ready"' not in (message := str(socket.recv(PATIENCE))):
            found += events_of(message)
        return found


def test_a_second_server_on_the_port_says_so(done: tuple[Web, str]) -> None:
    from cli.commands import Septet

    web, _ = done
    second = Septet(web.home)("web", "--port", str(web.port), "--no-open")
    assert second.returncode == 2
    assert "cannot listen on" in second.stderr
    assert len(second.stderr.splitlines()) == 1


def test_another_address_needs_a_token(tmp_path: Path) -> None:
    from cli.commands import Septet

    septet = Septet(tmp_path / "home")
    refused = septet("web", "--host", "0.0.0.0", "--port", "0")  # the name of every address, not bound to
    assert (refused.returncode, "--token-file" in refused.stderr) == (2, True)
    token = tmp_path / "token"
    token.write_text("short\n")
    refused = septet("web", "--host", "0.0.0.0", "--port", "0", "--token-file", str(token))
    assert (refused.returncode, "at least 16" in refused.stderr) == (2, True)


def test_a_shared_token_opens_many_browsers_and_programs(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-is-shared\n")
    token.chmod(0o600)
    (tmp_path / "home").mkdir()
    web = Web(tmp_path / "home", "scripted:demo/clock", 0, "--token-file", str(token))
    try:
        assert web.token == ""
        for _ in range(2):
            assert web.ask("GET", "/?token=a-token-that-is-shared").status == 303
        bearer = {"Authorization": "Bearer a-token-that-is-shared"}
        assert web.ask("GET", "/api/chats", headers=bearer).status == 200
        assert web.ask("GET", "/api/chats", headers={"Authorization": "Bearer no"}).status == 401
    finally:
        assert web.stop() == 143


WORDS = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
ACTS = st.sampled_from(["say", "approve", "accept", "edit", "pause", "fork", "restore", "nothing"])
FIELDS = st.sampled_from(["text", "to", "seq", "version", "goal", "team", "model", "demo", "rounds", "cost"])
PATHS = st.sampled_from(
    ["", "/events?after={}", "/diff?old={}&new={}", "/versions/{}.zip", "/export/{}", "/{}", "/acts"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    act=ACTS,
    fields=st.dictionaries(FIELDS, JSON, max_size=4),
    path=PATHS,
    word=WORDS,
    raw=st.binary(max_size=60),
)
def test_no_request_makes_the_server_stumble(
    done: tuple[Web, str], act: str, fields: dict[str, object], path: str, word: str, raw: bytes
) -> None:
    web, chat = done
    quoted = quote(word.encode("utf-8", "replace"), safe="")
    answers: list[Answer] = [
        web.get(f"/api/chats/{chat}{path.replace('{}', quoted)}"),
        web.get(f"/api/chats/{quoted}"),
        web.get(f"/api/search?q={quoted}"),
        web.get(f"/artefacts/{quoted}/{quoted}"),
        web.post(f"/api/chats/{chat}/acts", {"act": act, **{k: v for k, v in fields.items() if k != "goal"}}),
        web.post("/api/chats", {**fields, "model": "scripted:/nowhere"}),
        web.post(f"/api/chats/{chat}/acts", raw),
    ]
    assert [answer.status for answer in answers if answer.status >= 500] == []
    assert web.process.poll() is None


def test_somebody_who_watches_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    web = Web(tmp_path / "home")
    chat = web.begin()
    with web.watch(chat):
        assert web.stop() == 143


@pytest.mark.parametrize(
    ("demo", "sign", "status"), [("hello", "version_written", "done"), ("ctr", "answer_given", "answered")]
)
@pytest.mark.torture
def test_every_demo_brings_its_own_team(done: tuple[Web, str], demo: str, sign: str, status: str) -> None:
    web, _ = done
    chat = str(web.post("/api/chats", {"demo": demo}).json()["chat"])
    events = web.until(chat, "chat_ended")
    assert sign in kinds(events)
    assert web.get(f"/api/chats/{chat}").json()["status"] == status


def asked_now(web: Web, chat: str) -> str:
    """The action of the question that the page of the chat shows."""
    with web.watch(chat) as socket:
        while '"question":{' not in (message := str(socket.recv(PATIENCE))):
            pass
    return message.partition('"action":"')[2].partition('"')[0]


def test_who_approves_the_plan_beforehand_is_still_asked_before_a_review_and_a_step(web: Web) -> None:
    reviewed = web.begin(yes=True, consult=True)
    seen = web.until(reviewed, "version_written")[-1]["seq"]
    asked = web.until(reviewed, "turn_opened", int(str(seen)) + 1)[-1]
    asked = (
        asked
        if asked["subject"] == "proxy"
        else web.until(reviewed, "turn_opened", int(str(asked["seq"])))[-1]
    )
    assert asked["subject"] == "proxy"
    assert web.act(reviewed, "accept").status == 400, "it does not say what is accepted"
    assert web.act(reviewed, "accept", tree="of another version").status == 409
    (version,) = [one for one in events(web, reviewed) if one["type"] == "septet.version_written"]
    tree = msgspec.convert(version["data"], dict[str, object])["tree"]
    assert web.act(reviewed, "accept", tree=tree).status == 200
    ended = web.until(reviewed, "chat_ended")[-1]
    assert msgspec.convert(ended["data"], dict[str, str])["reason"] == "accepted"
    stepped = web.begin(yes=True, step=True)
    web.until(stepped, "turn_opened")
    asked = asked_now(web, stepped)
    assert web.act(stepped, "step").status == web.act(stepped, "step", action="0" * 64).status == 409
    assert web.act(stepped, "step", action=asked).status == 200
    web.until(stepped, "plan_approved")
    assert web.act(stepped, "step", action=asked).status == 409, "it is used up"
    assert web.act(stepped, "stop").status == 200
    log = web.until(stepped, "chat_ended")
    speakers = [one["subject"] for one in log if one["type"] == "septet.turn_opened"]
    assert "planner" in speakers
    assert "coder" not in speakers
