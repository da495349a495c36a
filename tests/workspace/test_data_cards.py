"""What a data card says, for every format, without changing the file or filling the memory."""

import gzip
import resource
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest

from septet.errors import BadUsage
from septet.workspace.data_cards import card_of, read_dictionary

CSV = "name,amount,when\nann,1.5,2023-01-01\nbob,2.5,2023-02-01\n,4,2023-03-01\n"
MEANINGS = {"amount": "what was paid"}


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text(CSV)
    made = card_of(path, MEANINGS)
    assert made.sha256 == sha256(CSV.encode()).hexdigest()
    first, head, name, amount, when, *rest = made.card.splitlines()
    assert first == f"sales.csv: CSV, 3 rows, 3 columns, {len(CSV)} bytes"
    assert head.split() == ["column", "type", "smallest", "largest", "different", "empty", "meaning"]
    assert name.split() == ["name", "VARCHAR", "ann", "bob", "≈2", "33.33", "%"]
    assert amount.split()[:4] == ["amount", "DOUBLE", "1.5", "4.0"]
    assert amount.endswith("what was paid")
    assert when.split()[:4] == ["when", "DATE", "2023-01-01", "2023-03-01"]
    assert rest[:2] == ["first rows:", "ann | 1.5 | 2023-01-01"]
    assert path.read_text() == CSV


def test_packed_json_lines_and_parquet_and_text(tmp_path: Path) -> None:
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"a": 1, "b": "x"}\n{"a": 2, "b": null}\n'))
    assert "log.jsonl.gz: JSON lines, 2 rows, 2 columns" in card_of(packed, {}).card
    parquet = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{parquet}'")
    assert "t.parquet: Parquet, 1,000 rows, 1 column," in card_of(parquet, {}).card
    text = tmp_path / "server.log"
    text.write_text('GET /, "a"\nPOST /b, 7\n\nGET /c\n')
    card = card_of(text, {}).card
    assert "server.log: text, 4 rows, 1 column," in card
    assert 'GET /, "a"' in card


@pytest.mark.parametrize("name", ["none.csv", "folder"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadUsage, match=name):
        card_of(tmp_path / name, {})


def test_a_dictionary_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text(
        "# columns\nuid: the person\n| `tag` | a click or not |\n- site_id - where\nosName,the system\n"
    )
    assert read_dictionary(path) == {
        "uid": "the person",
        "tag": "a click or not",
        "site_id": "where",
        "osname": "the system",
    }


@pytest.mark.torture
def test_a_gigabyte_is_described_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    duckdb.sql(
        "COPY (SELECT range AS id, md5(range::VARCHAR) AS word, random() AS x FROM range(17_000_000)) "
        f"TO '{path}' (HEADER)"
    )
    assert path.stat().st_size > 1e9
    imports = "from pathlib import Path\nfrom septet.workspace.data_cards import card_of\n"
    program = f"{imports}print(card_of(Path({str(path)!r}), {{}}).card)"
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert "17,000,000 rows" in shown
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1024 * 1024
