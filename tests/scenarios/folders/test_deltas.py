"""Versions over a base are what the team has changed: what an act costs does not grow with the repository."""

from pathlib import Path

import msgspec
import pytest
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import ACCEPT, Turn, call, code, git, plan, play, repository, script, send

from septet.domain.events import SnapshotTaken, VersionWritten
from septet.wiring.session import open_session

BUG = "def add(a, b):\n    return a - b\n"
FILES = {
    "calc.py": BUG,
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    **{f"more/module_{number}.py": f"NUMBER = {number}\n" * 20 for number in range(300)},
}
DECISION = {"wrong": "code", "item": "P1", "why": "two and three are five"}


@pytest.mark.anyio
async def test_one_line_by_the_autocoder_is_a_small_event_and_a_blob(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    wish = {"path": "calc.py", "old": "a - b", "new": "a + b", "decision": DECISION}
    mends = plan("", "mends tests/test_calc.py::test_add")
    model = script(tmp_path, mends, call("edit_text", wish), ACCEPT)
    played = await play(tmp_path, model, "autocoder", rounds=3)
    assert played.ended.reason == "done", played.refusals
    versions = [event for event in played.events if isinstance(event, VersionWritten)]
    assert [[file.path for file in version.files] for version in versions] == [[], ["calc.py"]]
    assert all(len(msgspec.json.encode(version)) < 600 for version in versions)
    assert not any(isinstance(event, SnapshotTaken) for event in played.events)
    assert git(project, "status", "--porcelain", "-uall") == " M calc.py\n"
    async with open_session(home_in(tmp_path)) as session:
        addresses = {file.sha256 for version in versions for file in version.files}
        assert [await session.blobs.get(one) for one in addresses] == [BUG.replace("-", "+").encode()]
    size = sum(path.stat().st_size for path in home_in(tmp_path).blobs.rglob("*") if path.is_file())
    assert size < 128_000, "no text that nobody has changed is kept"


@pytest.mark.anyio
async def test_a_large_project_that_is_finished_needs_no_change(tmp_path: Path) -> None:
    repository(tmp_path / "project", {**FILES, "calc.py": BUG.replace("-", "+"), "main.py": "print(5)\n"})
    checks = "tests tests/test_calc.py::test_add", "command python main.py => 5"
    model = script(tmp_path, plan("python main.py", *checks), ACCEPT)
    played = await play(tmp_path, model, "autocoder", rounds=3)
    assert played.ended.reason == "done", played.ended


@pytest.mark.anyio
async def test_a_large_project_that_goes_in_circles_ends(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    acts = [
        call("edit_text", {"path": "calc.py", "old": f"a {old} b", "new": f"a {new} b", "decision": DECISION})
        for old, new in ("-*", "*-", "-*", "*-")
    ]
    model = script(tmp_path, plan("", "tests tests/test_calc.py::test_add"), *acts)
    played = await play(tmp_path, model, "autocoder", rounds=9)
    assert played.ended.reason == "no_progress", played.ended


EDITED = BUG.replace("-", "+") + "\n\nprint(add(2, 3))\n"
WAYS: dict[str, tuple[Turn, ...]] = {
    "pair": (
        {"role": "manager", "say": "Mend calc.py.\nnext: coder"},
        {"role": "coder", "say": "1. add"},
        code({"calc.py": EDITED}),
        code({"calc.py": EDITED}),
        *[{"role": "manager", "say": "terminate: it adds"}] * 2,
    ),
    "assistant": (
        send("mend calc.py"),
        call("File", {"file_name": "calc.py", "body": EDITED}, role="assistant"),
        call("File", {"file_name": "calc.py", "body": EDITED}, role="assistant"),
        call("ExecutePyFile", {"file_name": "calc.py"}, role="assistant"),
        {"role": "assistant", "say": "done"},
        {"role": "proxy", "say": "It is done."},
    ),
}
MANY = {**FILES, **{f"most/part_{number}.py": f"PART = {number}\n" for number in range(1_700)}}


@pytest.mark.anyio
@pytest.mark.parametrize("name", WAYS)
async def test_pair_and_assistant_cost_what_they_change_and_deliver_it(tmp_path: Path, name: str) -> None:
    project = repository(tmp_path / "project", MANY)
    played = await play(tmp_path, script(tmp_path, *WAYS[name]), name, rounds=9)
    versions = [event for event in played.events if isinstance(event, VersionWritten)]
    assert [[file.path for file in version.files] for version in versions] == [["calc.py"]]
    sizes = {type(event).__name__: len(msgspec.json.encode(event)) for event in played.events}
    assert max(sizes.values()) < 16_000, sizes
    assert not any(isinstance(event, SnapshotTaken) for event in played.events)
    assert len(played.told) < 200_000, "prompts are bounded"
    assert git(project, "status", "--porcelain", "-uall") == " M calc.py\n"
    blobs = [path for path in home_in(tmp_path).blobs.rglob("*") if path.is_file()]
    manifest = len(MANY) * 100
    assert sum(path.stat().st_size for path in blobs) < manifest + 64_000


SHOP = {
    "shop/__init__.py": "",
    "shop/money.py": "from decimal import ROUND_DOWN, Decimal\n\n\ndef rounded(amount):\n"
    '    return float(Decimal(str(amount)).quantize(Decimal("0.01"), ROUND_DOWN))\n',
    "shop/invoice.py": "from shop.money import rounded\n\n\ndef gross(net):\n    return rounded(net * 1.17)\n",
    "tests/test_invoice.py": "from shop.invoice import gross\n\n\ndef test_half():\n    assert gross(0.5) == 0.59\n",
    **{f"shop/items/item_{number}.py": f"NUMBER = {number}\n" * 80 for number in range(200)},
}


@pytest.mark.anyio
async def test_the_autocoder_looks_at_files_that_are_not_shown_before_it_acts(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", SHOP)
    looks: Turn = {
        "role": "coder",
        "calls": [
            {"name": "search", "arguments": {"pattern": "def rounded"}},
            {"name": "read", "arguments": {"path": "shop/money.py"}},
        ],
        "expect": "E   assert 0.58 == 0.59",
    }
    mend = {"path": "shop/money.py", "decision": DECISION}
    acts: Turn = {
        "role": "coder",
        "expect": "5\t    return float(Decimal",
        "calls": [
            {"name": name, "arguments": {"reasoning": "it rounds down", **mend, **more}}
            for name, more in (
                ("edit_text", {"old": "import ROUND_DOWN,", "new": "import ROUND_HALF_UP,"}),
                ("edit_text", {"old": "), ROUND_DOWN)", "new": "), ROUND_HALF_UP)"}),
            )
        ],
    }
    model = script(tmp_path, plan("", "mends tests/test_invoice.py::test_half"), looks, acts, ACCEPT)
    played = await play(tmp_path, model, "autocoder", rounds=3)
    assert played.ended.reason == "done", played.refusals
    assert git(project, "status", "--porcelain", "-uall") == " M shop/money.py\n"
    first, second = (request for request in played.requests if request.role == "coder")
    assert second.messages[: len(first.messages)] == first.messages
    assert "NUMBER = 7" not in first.messages[-1].text
    assert [message.role for message in second.messages[len(first.messages) :]] == [
        "assistant",
        "tool",
        "tool",
    ]
