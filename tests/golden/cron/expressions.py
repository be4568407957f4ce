"""Cron expressions to hold against the originals: tricky ones by hand, and as many as wanted from a seeded grammar."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def handwritten(dialect: str) -> list[str]:
    """Return the tricky expressions of a dialect, and nothing at all."""
    sections = _sections()
    if dialect in ("unix", "cron4j"):
        return ["", " ", *sections["five fields"], *(sections["cron4j"] if dialect == "cron4j" else [])]
    either = sections["seconds first"]
    expressions = ["", *(expression.replace("{?}", "?") for expression in either)]
    if dialect == "quartz":
        return [*expressions, *sections["quartz"]]
    return [*expressions, *(expression.replace("{?}", "*") for expression in either[:40])]


def _sections() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("handwritten.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            expressions = sections[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            expressions.append(line)
    return sections


def generated(dialect: str, count: int, seed: int) -> list[str]:
    """Return so many different expressions: most follow the dialect's grammar, about an eighth has a fault put in."""
    rng = random.Random(f"{dialect} {seed}")
    make = {"unix": _unix, "cron4j": _cron4j, "quartz": _quartz, "spring": _spring}[dialect]
    made: dict[str, None] = {}
    while len(made) < count:
        expression = make(rng)
        if rng.random() < 0.125:
            expression = _broken(rng, expression)
        made[expression] = None
    return list(made)


def _unix(rng: random.Random) -> str:
    return " ".join(_five(rng, _weekday_ranges(rng, 0, 7, names=True)))


def _cron4j(rng: random.Random) -> str:
    def one() -> str:
        fields = _five(rng, _weekday_ranges(rng, 0, 7, names=True, wraps=True), wraps=True)
        if rng.random() < 0.15:
            fields[2] = rng.choice(("L", "L", f"{rng.randint(20, 31)}-L", f"{rng.randint(1, 28)},L"))
        return " ".join(fields)

    return "|".join(one() for _ in range(rng.choice((1, 1, 1, 1, 2, 3))))


def _quartz(rng: random.Random) -> str:
    fields = [_second(rng), *_five(rng, "?", wraps=True)]
    if rng.random() < 0.5:
        fields[3] = "?"
        fields[5] = _pick(
            rng,
            (5, lambda: _weekday_ranges(rng, 1, 7, names=True, wraps=True)),
            (1, lambda: f"{rng.randint(1, 7)}L"),
            (1, lambda: f"{rng.choice(WEEKDAYS)}L"),
            (1, lambda: f"{rng.randint(1, 7)}#{rng.randint(1, 5)}"),
            (1, lambda: f"{rng.choice(WEEKDAYS)}#{rng.randint(1, 5)}"),
            (0.5, lambda: "L"),
        )
    elif rng.random() < 0.4:
        fields[3] = ",".join(_quartz_day(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    if rng.random() < 0.2:
        year = rng.randint(2024, 2035)
        fields.append(rng.choice(("*", str(year), f"{year}-{year + 5}", f"{year}/2", f"{year},{year + 3}", "*/3")))
    return " ".join(fields)


def _quartz_day(rng: random.Random) -> str:
    return _pick(
        rng,
        (1, lambda: "L"),
        (1, lambda: "LW"),
        (1, lambda: f"L-{rng.randint(0, 27)}"),
        (0.5, lambda: f"L-{rng.randint(1, 25)}W"),
        (1.5, lambda: f"{rng.randint(1, 31)}W"),
        (1, lambda: str(rng.randint(1, 31))),
    )


def _spring(rng: random.Random) -> str:
    fields = [_second(rng), *_five(rng, "*")]
    if rng.random() < 0.25:
        special = [_quartz_day(rng) for _ in range(rng.choice((1, 1, 1, 2)))]
        fields[3] = (
            ",".join(day for day in special if not (day.startswith("L-") and day.endswith("W")) and day != "L-0") or "L"
        )
    elif rng.random() < 0.2:
        fields[3] = "?"
    if rng.random() < 0.6:
        fields[5] = _pick(
            rng,
            (5, lambda: _weekday_ranges(rng, 0, 7, names=True)),
            (1, lambda: f"{rng.randint(0, 7)}L"),
            (1, lambda: f"{rng.choice(WEEKDAYS)}L"),
            (1, lambda: f"{rng.randint(0, 7)}#{rng.randint(1, 5)}"),
            (1, lambda: f"{rng.choice(WEEKDAYS)}#{rng.randint(1, 5)},{rng.randint(0, 7)}#{rng.randint(1, 5)}"),
            (0.5, lambda: "?"),
        )
    return " ".join(fields)


def _five(rng: random.Random, weekday: str, *, wraps: bool = False) -> list[str]:
    return [
        _pick(rng, (2, lambda: str(rng.randint(0, 59))), (1, lambda: _list(rng, 0, 59, wraps=wraps))),
        _pick(
            rng,
            (2, lambda: str(rng.randint(0, 23))),
            (1, lambda: "*"),
            (1, lambda: str(rng.randint(1, 3))),
            (1, lambda: _list(rng, 0, 23, wraps=wraps)),
        ),
        _pick(rng, (3, lambda: "*"), (2, lambda: _list(rng, 1, 31, wraps=wraps))),
        _pick(rng, (3, lambda: "*"), (1, lambda: _list(rng, 1, 12, wraps=wraps)), (1, lambda: _names(rng, MONTHS))),
        weekday,
    ]


def _second(rng: random.Random) -> str:
    return _pick(rng, (3, lambda: "0"), (1, lambda: str(rng.randint(0, 59))), (1, lambda: _list(rng, 0, 59)))


def _weekday_ranges(rng: random.Random, low: int, high: int, *, names: bool, wraps: bool = False) -> str:
    return _pick(
        rng,
        (2, lambda: "*"),
        (2, lambda: _list(rng, low, high, wraps=wraps)),
        (names, lambda: _names(rng, WEEKDAYS[1:])),
    )


def _names(rng: random.Random, names: tuple[str, ...]) -> str:
    first, last = sorted(rng.sample(range(len(names)), 2))
    spelled = rng.choice((f"{names[first]}", f"{names[first]}-{names[last]}", f"{names[first]},{names[last]}"))
    return spelled if rng.random() < 0.7 else spelled.lower()


def _list(rng: random.Random, low: int, high: int, *, wraps: bool = False) -> str:
    return ",".join(_element(rng, low, high, wraps=wraps) for _ in range(rng.choice((1, 1, 1, 1, 2, 3))))


def _element(rng: random.Random, low: int, high: int, *, wraps: bool) -> str:
    start, end = rng.randint(low, high), rng.randint(low, high)
    if start > end and not wraps:
        start, end = end, start
    step = rng.randint(1, max(2, (high - low) // 2))
    return rng.choice(
        (str(start), str(start), f"{start}-{end}", f"{start}-{end}/{step}", f"*/{step}", f"{start}/{step}", "*")
    )


def _pick(rng: random.Random, *choices: tuple[float, Callable[[], str]]) -> str:
    return rng.choices([make for _, make in choices], [weight for weight, _ in choices])[0]()


def _broken(rng: random.Random, expression: str) -> str:
    fields = expression.split(" ")
    at = rng.randrange(len(fields))
    fault = rng.randrange(5)
    if fault == 0:
        fields[at] = rng.choice(
            ("60", "99", "24", "32", "13", "8", "-1", "*/0", "1-", "/", "#", "5#", "1-2-3", "W", "XYZ")
        )
    elif fault == 1:
        del fields[at]
    elif fault == 2:
        fields[at] += rng.choice((",", "-", "/", "L", "W", "#3", "?", "x", "/5", "-3"))
    elif fault == 3:
        fields[at] = rng.choice((",", "-", "?", "L", "W", "*")) + fields[at]
    else:
        fields.insert(at, rng.choice(("*", "?", "1", "FRI")))
    return " ".join(fields)
