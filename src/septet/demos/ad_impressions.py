"""A made-up log of ad impressions for the demo about data: the same bytes on every machine."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

ROWS = 9_500
CSV_HEADER = "reg_time,uid,fc_imp_chk,fc_time_chk,utmtr,mm_dma,osName,model,hardware,site_id,tag"
DEVICES = (
    ("Android", "Galaxy", "Mobile Phone", 31),
    ("Android", "Pixel", "Mobile Phone", 28),
    ("iOS", "iPhone", "Mobile Phone", 52),
    ("iOS", "iPad", "Tablet", 44),
    ("Windows", "PersonalComputer", "Desktop", 17),
)
"""System, model, hardware, and clicks per thousand impressions."""
MARKETS = (501, 803, 602, 511, 618, 753, 501)
SITES = ("news.example", "sport.example", "mail.example", "games.example", "news.example")
OTHERWISE = ("",) * 17 + ("vContent", "vContent", "vCart")
DICTIONARY = {
    "reg_time": "when the impression was registered",
    "uid": "the person, made anonymous",
    "fc_imp_chk": "how many impressions the person has had",
    "fc_time_chk": "seconds since the last one",
    "utmtr": "whether the person came by a campaign",
    "mm_dma": "the designated market area",
    "osName": "the operating system of the device",
    "site_id": "the site that showed the ad",
    "tag": "fclick is a click, v… is a view-through, empty is neither",
}


def chances() -> Iterator[int]:
    """Numbers below 32,768 that look like chance; no library's generator is promised to stay as it is."""
    state = 7
    while True:
        state = (1_103_515_245 * state + 12_345) & 0x7FFFFFFF
        yield state >> 16


def rows() -> Iterator[str]:
    chance = chances()
    for number in range(ROWS):
        system, model, hardware, clicked = DEVICES[next(chance) % len(DEVICES)]
        hour = next(chance) % 24
        likely = clicked + (15 if 18 <= hour <= 21 else 0)
        tag = "fclick" if next(chance) % 1000 < likely else OTHERWISE[next(chance) % len(OTHERWISE)]
        yield ",".join(
            [
                f"2023-05-{next(chance) % 28 + 1:02d} {hour:02d}:{next(chance) % 60:02d}:00",
                f"u{number:05d}",
                str(next(chance) % 5 + 1),
                str(next(chance) % 4000),
                str(next(chance) % 2),
                str(MARKETS[next(chance) % len(MARKETS)]),
                system,
                model,
                hardware,
                SITES[next(chance) % len(SITES)],
                tag,
            ]
        )


def write_impressions(path: Path) -> None:
    """Written whole or not at all; a log that is there already is the same one."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write("\n".join([CSV_HEADER, *rows()]) + "\n")
    Path(file.name).replace(path)
