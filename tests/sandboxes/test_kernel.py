"""A stateful kernel: cells share a state, which survives errors, interrupts, time-outs and crashes."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from sandboxes.processes import processes_with

from septet.domain.runs import MEBIBYTE, Job, Limits
from septet.sandboxes.kernel import Kernel, open_kernel
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

LIMITS = Limits(seconds=6.0, memory=256 * MEBIBYTE, output=MEBIBYTE)


@pytest.fixture
async def cells(tmp_path: Path) -> AsyncGenerator[Kernel]:
    async with open_kernel(
        Bubblewrap.detect(), Job(command=(), workspace=str(tmp_path), limits=LIMITS)
    ) as kept:
        yield kept


async def test_what_one_cell_defines_the_next_one_sees(cells: Kernel) -> None:
    assert (await cells.run("x = 20\ndef double(n): return 2 * n")).succeeded
    result = await cells.run("print('now'); double(x) + 2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "now\n42\n", "")
    assert result.rung == "bubblewrap"


async def test_an_error_is_the_cells_own_and_the_state_stays(cells: Kernel) -> None:
    await cells.run("x = 1")
    failed = await cells.run("x = 2\n1 / 0\nx = 3")
    assert failed.exit_code == 1
    assert 'File "<cell 2>", line 2' in failed.stderr
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert (await cells.run("x")).stdout == "2\n"


async def test_code_that_is_none_fails_with_its_place(cells: Kernel) -> None:
    result = await cells.run("print('never'\n")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "SyntaxError" in result.stderr


async def test_an_exit_ends_the_cell_only(cells: Kernel) -> None:
    await cells.run("x = 5")
    assert (await cells.run("import sys; sys.exit(0)")).exit_code == 0
    assert (await cells.run("sys.exit('why')")).exit_code == 1
    assert (await cells.run("x")).stdout == "5\n"


async def test_a_cell_out_of_time_is_stopped_and_the_state_is_kept(cells: Kernel) -> None:
    await cells.run("x = 7")
    stopped = await cells.run("y = 8\nwhile True: pass")
    assert stopped.stopped_by == "time"
    assert (await cells.run("x, y")).stdout == "(7, 8)\n"


async def test_a_cell_that_is_deaf_is_ended_and_the_good_cells_are_run_again(
    cells: Kernel, tmp_path: Path
) -> None:
    await cells.run("x = 7; open('count', 'a').write('.'); print('heard once')")
    deaf = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 0\nwhile True: time.sleep(1)"
    )
    assert (await cells.run(deaf)).stopped_by == "time"
    result = await cells.run("x")
    assert result.stdout == "7\n"
    assert (tmp_path / "count").read_text() == ".."


async def test_after_a_crash_the_good_cells_are_run_again(cells: Kernel) -> None:
    await cells.run("numbers = [1]")
    await cells.run("numbers.append(2)")
    await cells.run("numbers.append(3); 1 / 0")
    crashed = await cells.run("import os; print('last words', flush=True); os._exit(9)")
    assert (crashed.exit_code, crashed.stdout) == (137, "last words\n")
    assert (await cells.run("numbers")).stdout == "[1, 2]\n"


async def test_too_much_memory_ends_the_cell(cells: Kernel) -> None:
    await cells.run("x = 1")
    result = await cells.run(
        "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1"
    )
    assert result.stopped_by == "memory"
    assert (await cells.run("x")).stdout == "1\n"


async def test_too_much_output_ends_the_cell(cells: Kernel) -> None:
    assert (await cells.run("while True: print('x' * 1000)")).stopped_by == "output"
    assert (await cells.run("1")).stdout == "1\n"


async def test_an_interrupt_stops_the_cell_and_keeps_the_state(cells: Kernel) -> None:
    def listen(stream: str, piece: bytes) -> None:
        cells.interrupt()

    result = await cells.run("x = 3\nprint('on')\nwhile True: pass", listen)
    assert (result.exit_code, result.stopped_by) == (130, None)
    assert "KeyboardInterrupt" in result.stderr
    assert (await cells.run("x")).stdout == "3\n"


async def test_a_restart_forgets(cells: Kernel) -> None:
    await cells.run("x = 3")
    await cells.restart()
    assert "NameError" in (await cells.run("x")).stderr


async def test_input_is_at_its_end_and_changes_are_told(cells: Kernel) -> None:
    assert "EOFError" in (await cells.run("input()")).stderr
    assert [change.path for change in (await cells.run("open('made', 'w').write('x');")).changes] == ["made"]


async def test_nobody_outlives_the_kernel(tmp_path: Path) -> None:
    mark = tmp_path.name
    async with open_kernel(
        Bubblewrap.detect(), Job(command=(), workspace=str(tmp_path), limits=LIMITS)
    ) as kept:
        command = ["sh", "-c", "echo up; sleep 600; true", mark]
        started = f"subprocess.Popen({command}, start_new_session=True, stdout=subprocess.PIPE)"
        await kept.run(f"import subprocess; child = {started}; child.stdout.readline()")
        assert processes_with(f"sleep 600; true\0{mark}")
    assert processes_with(mark) == []


async def test_a_cancelled_cell_leaves_a_kernel_that_works(cells: Kernel) -> None:
    await cells.run("x = 4")
    with anyio.move_on_after(0.3):
        await cells.run("import time; time.sleep(600)")
    assert (await cells.run("x")).stdout == "4\n"


FORGERS = {
    "writes to every descriptor": """
import os
for number in range(3, 64):
    try: os.write(number, b'succeeded\\n' * 5)
    except OSError: pass
""",
    "floods the channel without an end of line": """
import os
for number in range(3, 64):
    try: os.set_blocking(number, False); os.write(number, b'succeeded' * 10_000)
    except OSError: pass
    finally:
        try: os.set_blocking(number, True); os.write(number, b'\\n')
        except OSError: pass
""",
    "replaces what runs code": """
import ast, builtins, json, traceback
real = builtins.exec
builtins.exec = builtins.eval = lambda *given: None
json.loads = lambda text: 'pass'
ast.parse = lambda *given: real('x = 1') or compile('', '', 'exec', 0x400)
traceback.print_exception = lambda *given: None
""",
}


@pytest.mark.parametrize("forger", FORGERS)
async def test_a_cell_speaks_neither_for_itself_nor_for_those_after_it(cells: Kernel, forger: str) -> None:
    """Each cell counts by itself: its outcome is the kernel's word, which it cannot put into the kernel's mouth."""
    assert (await cells.run(FORGERS[forger] + "\n1 / 0")).exit_code == 1
    assert (await cells.run("y = 2")).exit_code == 0
    assert [(await cells.run(code)).exit_code for code in ("1 / 0", "y", "no_such_name")] == [1, 0, 1]
    assert cells.successful_cells == ["y = 2", "y"]
