"""Questions about a log of ad impressions. Every number is a printed one and equals the reference."""

from hashlib import sha256
from pathlib import Path

from cli.commands import Septet
from scenarios.assistant.impressions import DICTIONARY, PROGRAM, ROWS, clicks, rate, rates, write_log
from scenarios.assistant.scripts import calls, execute, file, says, send, write

from septet.domain.codec import decode
from septet.domain.events import AnswerGiven, DataDescribed, ReplyRefused, RunFinished


def test_seven_questions_about_a_log(septet: Septet, tmp_path: Path) -> None:
    made = write_log(tmp_path / "log.csv")
    (tmp_path / "dictionary.txt").write_text(DICTIONARY)
    before = sha256((tmp_path / "log.csv").read_bytes()).hexdigest()
    systems = rates(made, "osName")
    hours = {row["reg_time"]: row["reg_time"][11:13] for row in made}
    by_hour = {
        hour: rate([row for row in made if hours[row["reg_time"]] == hour]) for hour in set(hours.values())
    }
    best_hour = min(by_hour, key=lambda hour: (-float(by_hour[hour]), hour))
    (dma, dma_clicks), (site, site_clicks) = clicks(made, "mm_dma")[0], clicks(made, "site_id")[0]
    views = sum(row["tag"].startswith("v") for row in made)
    wanted = {
        "overall": f"The click rate is {rate(made)} % over {ROWS:,} impressions.",
        "devices": "By system: " + ", ".join(f"{name} {systems[name]} %" for name in sorted(systems)) + ".",
        "market": f"Most clicks come from the market area {dma}: {dma_clicks}.",
        "hour": f"The best hour is the one that begins at {best_hour}:00, with {by_hour[best_hour]} %.",
        "site": f"The site with most clicks is {site}, with {site_clicks}.",
        "views": f"There are {views} view-throughs.",
        "plot": "The plot of the hours is hours.svg.",
    }
    program = PROGRAM.replace("@SOURCE@", str(tmp_path / "log.csv"))
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("all seven numbers, please"), expect="fclick is a click"),
        calls("assistant", file("ctr.py", program), execute("ctr.py"), expect="all seven numbers"),
        says("assistant", "ctr.py printed all of it.", expect="impressions: 9500"),
        says("proxy", "The click rate is 99.123 %."),
        says("proxy", "\n".join(wanted.values()), expect="no program printed 99.123"),
    )
    asked = (
        "The click rate overall, per device, the top market, hour and site, the view-throughs, and a plot?"
    )
    done = septet(
        *(
            "run",
            asked,
            "--data",
            "log.csv",
            "--dictionary",
            "dictionary.txt",
            "-m",
            model,
            "--json",
            "-n",
            "ctr",
        )
    )
    assert done.returncode == 0, done.stderr
    events = [decode(line).event for line in septet("export", "ctr", "--format", "jsonl").stdout.splitlines()]
    (card,) = [event for event in events if isinstance(event, DataDescribed)]
    assert "9,500 rows, 11 columns" in card.card
    assert "the designated market area" in card.card
    (given,) = [event for event in events if isinstance(event, AnswerGiven)]
    assert given.text == "\n".join(wanted.values())
    assert given.ground == "complete"
    (ran,) = [event for event in events if isinstance(event, RunFinished)]
    lines = ran.result.stdout.splitlines()
    for source in given.sources:
        assert source.script == "ctr.py"
        assert lines[source.line - 1] == source.text
    assert {rate(made), *systems.values(), str(dma_clicks), str(site_clicks), str(views)} <= {
        source.number for source in given.sources
    }
    (refused,) = [event for event in events if isinstance(event, ReplyRefused)]
    assert "99.123" in refused.reason
    assert [change.path for change in ran.result.changes] == ["hours.svg"]
    assert (septet.home / "work" / "ctr" / "hours.svg").read_text().startswith("<svg")
    assert sha256((tmp_path / "log.csv").read_bytes()).hexdigest() == before == card.sha256


def test_the_answer_goes_to_stdout_with_its_sources(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("n\n1\n2\n39\n")
    body = f"print('sum', sum(int(n) for n in open({str(tmp_path / 'n.csv')!r}).read().split()[1:]))\n"
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("sum it")),
        calls("assistant", file("add.py", body), execute("add.py")),
        says("assistant", "42", expect="sum 42"),
        says("proxy", "The sum is 42."),
    )
    done = septet("run", "What is the sum?", "--data", "n.csv", "-m", model, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "The sum is 42.\n\n42 ← add.py, output line 1: sum 42\n"


def test_a_program_cannot_write_the_data(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("n\n1\n")
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("spoil it")),
        calls(
            "assistant",
            file("spoil.py", f"open({str(tmp_path / 'n.csv')!r}, 'w').write('')\n"),
            execute("spoil.py"),
        ),
        says("assistant", "It cannot be written.", expect="Error"),
        says("proxy", "The data cannot be written."),
    )
    done = septet("run", "Spoil the data.", "--data", "n.csv", "-m", model, "--json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "n.csv").read_text() == "n\n1\n"


def test_bad_data_is_refused_before_anything_starts(septet: Septet, tmp_path: Path) -> None:
    missing = septet("run", "x", "--data", "none.csv", "-m", "scripted:x")
    assert missing.returncode == 2
    assert "none.csv cannot be read" in missing.stderr
    (tmp_path / "bad.parquet").write_text("no parquet")
    bad = septet("run", "x", "--data", "bad.parquet", "-m", "scripted:x")
    assert bad.returncode == 2
    assert "is not valid Parquet" in bad.stderr
    assert "there is no chat" in septet("resume").stderr
