"""The files of a reply: the code blocks that can become part of a version, and the refusal of those that cannot."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from septet.agents.replies import PartRefused
from septet.common.text import join_words
from septet.domain.events import ReplyRefused
from septet.domain.files import FileRef
from septet.domain.plans import Refusal
from septet.domain.replies import NO_CODE, CodeFile, Trouble, read_files
from septet.domain.state import State
from septet.ports import Blobs
from septet.workspace.files import path_problem
from septet.workspace.validation import elision_of, fault_text, file_fault, fragment_fault

MAIN = "main.py"
LEFT_OUT = re.compile(r"^\W*left out[*:]*\s+(?P<paths>.+)$", re.IGNORECASE | re.MULTILINE)


async def files_sent(
    state: State,
    text: str,
    blobs: Blobs,
    refused: ReplyRefused | None = None,
    *,
    parses: bool = False,
    base: Mapping[str, str] = MappingProxyType({}),
) -> tuple[CodeFile, ...] | Refusal:
    """The complete files of a reply and of one `refused` before it, if each can become part of a version.

    With `parses`, Python files must be valid Python. A reply may change the files of `base`, too.
    """
    written = await sources(state, blobs)
    before = {**base, **written}
    kept = await texts_of(refused.kept if refused else (), blobs)
    missing = refused.missing if refused else ()
    read = read_files(text, only=only_file(written, kept, missing), before={**before, **kept})
    paths = {*before, *kept, *(file.path for file in read.files)}
    faults = [*read.troubles]
    for file in read.files:
        old = before.get(file.path, "")
        named = None if file.path in before else path_problem(file.path, paths)
        found = named or unsound_refusal(file, old, parses=parses)
        faults += [Trouble(reason=found.reason, path=file.path)] if found else []
    said = {one.path for one in (*read.files, *read.troubles)}
    said |= {path for path in missing if is_left_out(path, text)}
    faults += [Trouble(reason=NOT_SENT.format(path), path=path) for path in missing if path not in said]
    bad = {fault.path for fault in faults}
    sound = {**kept, **{file.path: file.text for file in read.files}}
    files = tuple(CodeFile(path=path, text=text) for path, text in sound.items() if path not in bad)
    if not faults and not files:
        return Refusal(reason=NO_CODE)
    return await part_refused(faults, files, blobs) if faults else files


NOT_SENT = "'{0}' was refused and has not come again; send it, or write a line 'left out: {0}'"


def only_file(before: Mapping[str, str], kept: Mapping[str, str], missing: Sequence[str]) -> str:
    """The path of a single code block without a name."""
    if kept or missing:
        return missing[0] if len(missing) == 1 else ""
    return next(iter(before)) if len(before) == 1 else MAIN if MAIN in before or not before else ""


def is_left_out(path: str, text: str) -> bool:
    return any(path in found["paths"] for found in LEFT_OUT.finditer(text))


async def part_refused(faults: Sequence[Trouble], files: Sequence[CodeFile], blobs: Blobs) -> PartRefused:
    """Build a refusal with all faults, and keep the files that need not be sent again."""
    reasons = list(dict.fromkeys(fault.reason for fault in faults))
    missing = sorted({fault.path for fault in faults if fault.path and path_problem(fault.path) is None})
    named = join_words([file.path for file in files])
    rest = f"{named} {'is' if len(files) == 1 else 'are'} kept: send only what is wrong or missing."
    return PartRefused(
        reason="\n\n".join(["\n".join(reasons), *([rest] if files else [])]),
        kept=tuple([await keep_file(file, blobs) for file in files]),
        missing=tuple(missing),
    )


def unsound_refusal(file: CodeFile, before: str, *, parses: bool) -> Refusal | None:
    """Refuse a file with a placeholder for code, or with invalid code, unless it was like that before."""
    find = file_fault if parses and file.path.endswith(".py") else elision_of
    fault = find(file.text, file.path)
    if fault is None and parses and before and file.path.endswith(".py"):
        fault = fragment_fault(file.text, before)
        return Refusal(reason=FRAGMENT.format(fault_text(file.path, fault), file.path)) if fault else None
    if fault is None or (before and find(before, file.path) is not None):
        return None
    return Refusal(reason=f"{fault_text(file.path, fault)}; send the file whole")


FRAGMENT = "{0}; send the file whole, or one function in a block that starts with ```python {1}::NAME"


async def texts_of(files: Iterable[FileRef], blobs: Blobs) -> dict[str, str]:
    return {file.path: (await blobs.get(file.sha256)).decode(errors="replace") for file in files}


async def keep_file(file: CodeFile, blobs: Blobs) -> FileRef:
    content = file.text.encode()
    return FileRef(path=file.path, sha256=await blobs.put(content), size=len(content))


async def sources(state: State, blobs: Blobs) -> dict[str, str]:
    """The newest version's files as text, from blobs and not from the disk; a run may have made some that are none."""
    return {
        path: text for path, text in (await texts_of(state.work.files, blobs)).items() if "\0" not in text
    }
