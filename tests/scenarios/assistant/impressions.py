"""A generated log of ad impressions, and its numbers computed by other means than the program under test."""

import csv
import random
from collections import Counter
from pathlib import Path

FIELDS: list[str] = [
    *("reg_time", "uid", "fc_imp_chk", "fc_time_chk", "utmtr", "mm_dma"),
    *("osName", "model", "hardware", "site_id", "tag"),
]
ROWS = 9_500
DICTIONARY = """\
reg_time: when the impression was registered
mm_dma: the designated market area
osName: the operating system of the device
tag: fclick is a click, v… is a view-through, empty is neither
"""


def rows(seed: int = 7) -> list[dict[str, str]]:
    chance = random.Random(seed)
    made: list[dict[str, str]] = []
    for number in range(ROWS):
        system = chance.choices(["Android", "iOS", "Windows", "Mac OS X"], [5, 4, 2, 1])[0]
        hour = chance.randrange(24)
        clicked = chance.random() < {"Android": 0.03, "iOS": 0.05, "Windows": 0.02, "Mac OS X": 0.01}[system]
        tag = "fclick" if clicked else chance.choices(["", "vContent", "vCart"], [90, 6, 4])[0]
        made.append(
            {
                "reg_time": f"2023-05-{chance.randrange(1, 29):02d} {hour:02d}:{chance.randrange(60):02d}:00",
                "uid": f"u{number:05d}",
                "fc_imp_chk": str(chance.randrange(1, 6)),
                "fc_time_chk": str(chance.randrange(0, 4000)),
                "utmtr": str(chance.randrange(0, 2)),
                "mm_dma": str(chance.choice([501, 803, 602, 511, 618, 753])),
                "osName": system,
                "model": chance.choice(["Galaxy", "iPhone", "Pixel", "PersonalComputer"]),
                "hardware": chance.choice(["Mobile Phone", "Desktop", "Tablet"]),
                "site_id": chance.choice(["news.example", "sport.example", "mail.example", "games.example"]),
                "tag": tag,
            }
        )
    return made


def write_log(path: Path) -> list[dict[str, str]]:
    made = rows()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(made)
    return made


def rate(part: list[dict[str, str]]) -> str:
    return f"{100 * sum(row['tag'] == 'fclick' for row in part) / len(part):.3f}"


def rates(made: list[dict[str, str]], key: str) -> dict[str, str]:
    return {value: rate([row for row in made if row[key] == value]) for value in {row[key] for row in made}}


def clicks(made: list[dict[str, str]], key: str) -> list[tuple[str, int]]:
    counted = Counter(row[key] for row in made if row["tag"] == "fclick")
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


PROGRAM = '''
"""Answers about the log, one line a number."""

import csv
import sys
from collections import defaultdict

SOURCE = "@SOURCE@"


def main():
    seen, hits, views = defaultdict(int), defaultdict(int), 0
    with open(SOURCE, newline="") as file:
        for row in csv.DictReader(file):
            hour = row["reg_time"][11:13]
            views += row["tag"].startswith("v")
            named = {"all": "", "os": row["osName"], "dma": row["mm_dma"], "hour": hour, "site": row["site_id"]}
            for key in named.items():
                seen[key] += 1
                hits[key] += row["tag"] == "fclick"
    print(f"impressions: {seen['all', '']}")
    print(f"view-throughs: {views}")
    for kind, name in sorted(seen):
        rate = 100 * hits[kind, name] / seen[kind, name]
        print(f"{kind} {name}: clicks {hits[kind, name]} ctr {rate:.3f} %")
    draw({name: hits[kind, name] / seen[kind, name] for kind, name in sorted(seen) if kind == "hour"})


def draw(rates):
    top = max(rates.values())
    bars = [
        f'<rect x="{24 * place}" y="{220 - long:.1f}" width="18" height="{long:.1f}" fill="#3b6ea5"/>'
        for place, long in enumerate(200 * rate / top for rate in rates.values())
    ]
    with open("hours.svg", "w") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="620" height="240">' + "".join(bars) + "</svg>")


main()
'''
