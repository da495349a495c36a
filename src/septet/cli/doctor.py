"""`doctor`: what works on this machine, proven by trying, and the remedy for what does not."""

import click

from septet.cli.output import put, put_exactly


@click.command(epilog="Example: septet doctor --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def doctor(as_json: bool) -> int:
    """Look at this machine: Python, the sandbox, the log, the folders. Exit 6 when code cannot run here."""
    import anyio

    from septet.domain.codec import ENCODER
    from septet.wiring.diagnosis import diagnose

    findings = anyio.run(diagnose)
    if as_json:
        put_exactly(ENCODER.encode(findings).decode())
    else:
        for one in findings:
            put(f"{'✓' if one.well else '✗'} {one.what:<8} {one.detail}")
    return next((one.exit_code for one in findings if not one.well), 0)
