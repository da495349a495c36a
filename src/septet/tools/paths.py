"""Which paths a tool may touch: inside the workspace, on every system, and not the machinery around it."""

from collections.abc import Iterable

from septet.domain.plans import Refusal

DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)),
}
FORBIDDEN = set('<>:"|?*\\')
KEPT_OUT = {".git"}
LONGEST = 240


def path_trouble(path: str, existing: Iterable[str] = ()) -> Refusal | None:
    """Why a path is refused; nothing for a good one."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or any(part in ("", ".", "..") for part in parts):
        return Refusal(reason=f"'{path[:LONGEST]}' is not a path inside the workspace")
    if len(path.encode(errors="replace")) > LONGEST:
        return Refusal(reason=f"'{path[:LONGEST]}…' is too long")
    reasons = [*(part_trouble(part) for part in parts), twin(path, existing)]
    reason = next((reason for reason in reasons if reason), "")
    return Refusal(reason=f"'{path}' {reason}") if reason else None


def ways(path: str) -> set[str]:
    """The path and every folder that it leads through."""
    parts = path.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


def part_trouble(part: str) -> str:
    if any(sign in FORBIDDEN or ord(sign) < 32 or 0xD800 <= ord(sign) < 0xE000 for sign in part):
        return "holds a character that file names may not have everywhere"
    if part.partition(".")[0].strip().lower() in DEVICES:
        return "names a device"
    if part.endswith((".", " ")) or part.startswith(" "):
        return "begins or ends with a space or a dot that some systems drop"
    return "belongs to the repository, not to the program" if part.lower() in KEPT_OUT else ""


def twin(path: str, existing: Iterable[str]) -> str:
    """Two paths that only differ in case are one file on many machines."""
    near = next((one for one in existing if one != path and one.casefold() == path.casefold()), None)
    return f"differs only in case from '{near}'" if near else ""
