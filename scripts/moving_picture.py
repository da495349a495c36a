"""Draw a run of the demo as a moving picture: `python scripts/moving_picture.py` writes docs/images/demo.svg.

The run is real: Septet works in a pseudo-terminal, and each line appears when it came (pauses are shortened).
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from collections.abc import Iterator
from html import escape
from pathlib import Path
from time import monotonic

TARGET = Path(__file__).parent.parent / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 100, 32
LINE, LETTER, MARGIN = 18, 8.43, 16
LONGEST_PAUSE, LAST_PAUSE = 0.9, 6.0
FOOTER = re.compile(r"\x1b\[\?2004h.*?\x1b\[\?2004l", re.DOTALL)
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
COLOURS = {31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 90: "#7f848e"}
LOOKS = {1: ' font-weight="bold"'} | {code: f' fill="{colour}"' for code, colour in COLOURS.items()}
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A team builds a clock: \
plan, code, failing test, review, second version, evidence">
<style>
text {{ font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre }}
.l {{ animation: {total:.2f}s linear infinite }}
#all {{ animation: all {total:.2f}s linear infinite }}
@media (prefers-reduced-motion: reduce) {{ .l, #all {{ animation: none }} #all {{ transform: translateY({end}px) }} }}
{rules}
</style>
<rect width="100%" height="100%" rx="8" fill="#1e2127"/>
<svg y="{margin}" height="{inner}"><g id="all">
"""


def record(home: str) -> Iterator[tuple[float, str]]:
    """Pieces of the demo's output, each with the time at which it came."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS=str(COLUMNS), TERM="xterm-256color", SEPTET_HOME=home)
        command = [sys.executable, "-m", "septet", "demo", "clock", "--yes"]
        os.execv(sys.executable, command)  # noqa: S606 - our own program, in the terminal that was made for it
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    started = monotonic()
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        yield monotonic() - started, piece.decode(errors="replace")
    os.waitpid(child, 0)


def timed_lines(pieces: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The lines that stay, without the footer, the paths of this machine, and pauses that nobody wants to watch."""
    whole = "".join(text for _, text in pieces)
    kept = FOOTER.sub(lambda found: "\x00" * len(found[0]), whole)
    ends, place = list[tuple[int, float]](), 0
    for at, text in pieces:
        place += len(text)
        ends.append((place, at))
    found, place, before, shown = list[tuple[float, str]](), 0, 0.0, 0.0
    for line in kept.splitlines(keepends=True):
        place += len(line)
        text = line.replace("\x00", "").rstrip()
        if not text or "the program is in" in text:
            continue
        at = next(at for end, at in ends if end >= place)
        shown += min(LONGEST_PAUSE, at - before) + 0.04
        before = at
        found.append((shown, text))
    return found


def spans(line: str) -> str:
    """The line as parts of a text element, each in its colour."""
    parts, look, place = list[str](), "", 0
    for found in SEQUENCE.finditer(line):
        parts.append(span(line[place : found.start()], look))
        place = found.end()
        if found[2] == "m":
            codes = [int(code) for code in found[1].split(";") if code]
            look = "".join(LOOKS.get(code, "") for code in codes)
    return "".join([*parts, span(line[place:], look)])


def span(text: str, look: str) -> str:
    if not text:
        return ""
    return f"<tspan{look}>{escape(text)}</tspan>" if look else escape(text)


def draw(lines: list[tuple[float, str]]) -> str:
    total = lines[-1][0] + LAST_PAUSE
    rules, moves, body = list[str](), ["0% {transform: none}"], list[str]()
    for row, (at, text) in enumerate(lines):
        share = 100 * at / total
        rules.append(
            f"@keyframes l{row} {{0%, {share:.2f}% {{opacity: 0}} {share + 0.01:.2f}%, 100% {{opacity: 1}}}}"
        )
        up = -max(0, row + 1 - ROWS) * LINE
        moves.append(f"{share:.2f}% {{transform: translateY({up}px); animation-timing-function: step-end}}")
        place = f'x="{MARGIN}" y="{LINE * (row + 1) - 4}"'
        body.append(f'<text class="l" style="animation-name: l{row}" {place}>{spans(text)}</text>')
    end = -max(0, len(lines) - ROWS) * LINE
    rules.append(f"@keyframes all {{{' '.join(moves)} 100% {{transform: translateY({end}px)}}}}")
    head = HEAD.format(
        width=round(COLUMNS * LETTER + 2 * MARGIN),
        height=ROWS * LINE + 2 * MARGIN,
        inner=ROWS * LINE,
        margin=MARGIN,
        total=total,
        end=end,
        rules="\n".join(rules),
    )
    return head + "\n".join(body) + "\n</g></svg>\n</svg>\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        TARGET.write_text(draw(timed_lines(list(record(home)))), encoding="utf-8")


if __name__ == "__main__":
    main()
