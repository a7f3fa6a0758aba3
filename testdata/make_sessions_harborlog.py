"""The invented project of the shipped coding session: a small marina booking service with five real bugs.

`files()` gives path -> text. Standard library only; every byte is made here, nothing comes from a real project.
"""
import json
import random

MODELS = '''"""Plain records. Nothing in this module touches the database or the clock."""
from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum


class Season(str, Enum):
    WINTER = "winter"
    SHOULDER = "shoulder"
    HIGH = "high"


@dataclass(frozen=True)
class Vessel:
    name: str
    length_m: Decimal
    draught_m: Decimal
    owner_email: str | None = None


@dataclass(frozen=True)
class Berth:
    code: str
    pontoon: str
    max_length_m: Decimal
    depth_m: Decimal
    shore_power: bool = False

    def fits(self, vessel: Vessel) -> bool:
        """A vessel fits when it is short enough and leaves 30 cm under the keel at low water."""
        return vessel.length_m <= self.max_length_m and vessel.draught_m + Decimal("0.30") <= self.depth_m


@dataclass(frozen=True)
class Stay:
    """Nights, not days: the guest sleeps aboard on `arrive` and is gone by noon on `leave`."""

    arrive: date
    leave: date

    def __post_init__(self) -> None:
        if self.leave <= self.arrive:
            raise ValueError("a stay needs at least one night")

    @property
    def nights(self) -> int:
        return (self.leave - self.arrive).days


@dataclass
class Booking:
    id: int
    berth: str
    vessel: Vessel
    stay: Stay
    status: str = "confirmed"
    reminders_sent: list[datetime] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return self.status in {"confirmed", "checked_in"}
'''

LEDGER = '''"""Who lies where, and when. All rules about double bookings live here."""
from __future__ import annotations

from bisect import insort
from collections import defaultdict
from datetime import date, timedelta

from .models import Berth, Booking, Stay, Vessel


class BerthTaken(Exception):
    def __init__(self, berth: str, other: Booking) -> None:
        super().__init__(f"{berth} is taken by booking {other.id} ({other.stay.arrive} to {other.stay.leave})")
        self.berth = berth
        self.other = other


class DoesNotFit(Exception):
    pass


class BookingLedger:
    def __init__(self, berths: list[Berth]) -> None:
        self._berths = {b.code: b for b in berths}
        self._by_berth: dict[str, list[tuple[date, int]]] = defaultdict(list)
        self._bookings: dict[int, Booking] = {}
        self._next_id = 1

    # -- questions ---------------------------------------------------------------------------

    def conflicts(self, berth: str, stay: Stay, ignore: int | None = None) -> list[Booking]:
        """Bookings on `berth` that stand in the way of `stay`."""
        found = []
        for arrive, booking_id in self._by_berth[berth]:
            if booking_id == ignore:
                continue
            other = self._bookings[booking_id]
            if not other.active:
                continue
            if arrive <= stay.leave and stay.arrive <= other.stay.leave:
                found.append(other)
        return found

    def free_berths(self, vessel: Vessel, stay: Stay) -> list[Berth]:
        """Berths the vessel fits in and nobody else has, smallest first so that long berths stay free."""
        fitting = [b for b in self._berths.values() if b.fits(vessel)]
        fitting.sort(key=lambda b: (b.max_length_m, b.code))
        return [b for b in fitting if not self.conflicts(b.code, stay)]

    def occupancy(self, day: date) -> dict[str, int]:
        """Booking id by berth for the night of `day`."""
        night = Stay(day, day + timedelta(days=1))
        return {code: hit[0].id for code in self._berths if (hit := self.conflicts(code, night))}

    # -- changes -----------------------------------------------------------------------------

    def book(self, berth: str, vessel: Vessel, stay: Stay) -> Booking:
        place = self._berths[berth]
        if not place.fits(vessel):
            raise DoesNotFit(f"{vessel.name} does not fit in {berth}")
        if taken := self.conflicts(berth, stay):
            raise BerthTaken(berth, taken[0])
        booking = Booking(self._next_id, berth, vessel, stay)
        self._next_id += 1
        self._bookings[booking.id] = booking
        insort(self._by_berth[berth], (stay.arrive, booking.id))
        return booking

    def move(self, booking_id: int, berth: str) -> Booking:
        booking = self._bookings[booking_id]
        if taken := self.conflicts(berth, booking.stay, ignore=booking_id):
            raise BerthTaken(berth, taken[0])
        self._by_berth[booking.berth].remove((booking.stay.arrive, booking_id))
        booking.berth = berth
        insort(self._by_berth[berth], (booking.stay.arrive, booking_id))
        return booking

    def cancel(self, booking_id: int) -> None:
        self._bookings[booking_id].status = "cancelled"
'''

TARIFF = '''"""What a stay costs. Prices are in euro; tables are per metre of length and night."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from .models import Season, Stay, Vessel

PER_METRE = {Season.WINTER: 1.15, Season.SHOULDER: 2.35, Season.HIGH: 3.45}
WEEKLY_DISCOUNT = 0.15
SHORE_POWER_PER_NIGHT = 4.2
TOURIST_TAX = 1.1
VAT = 0.19


@dataclass(frozen=True)
class Line:
    label: str
    amount: float


@dataclass(frozen=True)
class Quote:
    lines: tuple[Line, ...]
    net: float
    vat: float

    @property
    def total(self) -> float:
        return round(self.net + self.vat, 2)


def season_of(day: date) -> Season:
    if day.month in (6, 7, 8):
        return Season.HIGH
    if day.month in (4, 5, 9, 10):
        return Season.SHOULDER
    return Season.WINTER


def nights_by_season(stay: Stay) -> dict[Season, int]:
    counts: dict[Season, int] = {}
    day = stay.arrive
    while day < stay.leave:
        season = season_of(day)
        counts[season] = counts.get(season, 0) + 1
        day += timedelta(days=1)
    return counts


def quote(vessel: Vessel, stay: Stay, *, persons: int = 2, shore_power: bool = False) -> Quote:
    lines = []
    for season, nights in nights_by_season(stay).items():
        amount = float(vessel.length_m) * PER_METRE[season] * nights
        weeks = nights // 7
        if weeks:
            amount -= amount * WEEKLY_DISCOUNT * (weeks * 7 / nights)
        lines.append(Line(f"{nights} nights, {season.value} season", round(amount, 2)))
    if shore_power:
        lines.append(Line("shore power", round(SHORE_POWER_PER_NIGHT * stay.nights, 2)))
    lines.append(Line("tourist tax", round(TOURIST_TAX * persons * stay.nights, 2)))
    net = sum(line.amount for line in lines)
    return Quote(tuple(lines), net, round(net * VAT, 2))
'''

GAUGES = '''"""Reads the harbour office's gauge export: one row a station and hour, semicolons, decimal commas."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Iterator

COLUMNS = ["station", "utc", "level_m", "quality"]


@dataclass(frozen=True)
class Reading:
    station: str
    utc: datetime
    level_m: Decimal
    quality: str


class BadRow(ValueError):
    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"row {number}: {why}")
        self.number = number


def read_gauges(path: Path) -> list[Reading]:
    return list(parse_gauges(path.read_text(encoding="utf-8")))


def parse_gauges(text: str) -> Iterator[Reading]:
    rows = text.split("\\n")[:-1]
    header = rows[0].split(";")
    if header != COLUMNS:
        raise BadRow(1, f"unknown columns {header}")
    for number, row in enumerate(rows[1:], start=2):
        cells = row.split(";")
        if len(cells) != len(COLUMNS):
            raise BadRow(number, f"{len(cells)} cells, {len(COLUMNS)} wanted")
        station, utc, level, quality = cells
        try:
            yield Reading(station, datetime.fromisoformat(utc), Decimal(level.replace(",", ".")), quality)
        except (ValueError, InvalidOperation) as error:
            raise BadRow(number, str(error)) from error
'''

TIDES = '''"""High and low water in harbour time. Predictions come in UTC and are shown as the harbour clock reads."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

from .gauges import Reading

HARBOUR = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Tide:
    kind: str
    at: datetime
    level_m: Decimal


def extremes(readings: list[Reading]) -> list[Tide]:
    """Turning points of the level. A plateau counts once, at its first reading."""
    ordered = sorted(readings, key=lambda r: r.utc)
    tides = []
    for before, here, after in zip(ordered, ordered[1:], ordered[2:]):
        if before.level_m < here.level_m >= after.level_m:
            tides.append(Tide("high", here.utc, here.level_m))
        elif before.level_m > here.level_m <= after.level_m:
            tides.append(Tide("low", here.utc, here.level_m))
    return tides


def day_table(readings: list[Reading], day: date) -> list[Tide]:
    """The tides of one harbour day, with times on the harbour clock."""
    midnight = datetime.combine(day, time(), tzinfo=HARBOUR)
    offset = midnight.utcoffset() or timedelta()
    table = []
    for tide in extremes(readings):
        local = tide.at.replace(tzinfo=timezone.utc) + offset
        if local.date() == day:
            table.append(Tide(tide.kind, local.replace(tzinfo=None), tide.level_m))
    return table


def under_keel(table: list[Tide], chart_depth_m: Decimal, draught_m: Decimal) -> Decimal:
    """Least water under the keel that day; without a low water in the table, the chart depth counts."""
    lows = [tide.level_m for tide in table if tide.kind == "low"]
    return chart_depth_m + min(lows, default=Decimal(0)) - draught_m
'''

REMINDERS = '''"""Arrival reminders: one mail, two days before a stay begins."""
from __future__ import annotations

import logging
from datetime import date, datetime, timedelta
from typing import Callable, Iterable

from .models import Booking
from .store import Store

log = logging.getLogger("harborlog.reminders")

LEAD = timedelta(days=2)


def due(bookings: Iterable[Booking], today: date) -> list[Booking]:
    return [
        b
        for b in bookings
        if b.active and not b.reminders_sent and b.vessel.owner_email and b.stay.arrive - LEAD <= today < b.stay.arrive
    ]


def run(store: Store, send: Callable[[str, str], None], now: datetime) -> int:
    """Sends what is due and returns how many went out. Called every ten minutes and at start-up."""
    batch = due(store.bookings(), now.date())
    sent = []
    for booking in batch:
        try:
            send(booking.vessel.owner_email, render(booking))
        except OSError as error:
            log.warning("reminder for booking %s failed: %s", booking.id, error)
            continue
        sent.append(booking.id)
    store.mark_reminded(sent, now)
    log.info("reminders: %s due, %s sent", len(batch), len(sent))
    return len(sent)


def render(booking: Booking) -> str:
    return (
        f"Dear crew of {booking.vessel.name},\\n\\n"
        f"berth {booking.berth} is ready for you from {booking.stay.arrive:%d.%m.%Y}, 14:00. "
        f"Please call the harbour office on channel 12 before you enter.\\n"
    )
'''

STORE = '''"""SQLite behind four verbs. One connection, WAL, foreign keys on."""
from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Iterator

from .models import Berth, Booking, Stay, Vessel

SCHEMA = """
create table if not exists berth (
    code text primary key, pontoon text not null, max_length_m text not null, depth_m text not null,
    shore_power integer not null default 0
);
create table if not exists booking (
    id integer primary key, berth text not null references berth(code), vessel text not null,
    arrive text not null, leave text not null, status text not null default 'confirmed'
);
create index if not exists booking_by_berth on booking(berth, arrive);
create table if not exists reminder (
    booking integer not null references booking(id), sent_at text not null
);
"""


class Store:
    def __init__(self, path: Path | str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma foreign_keys = on")
        self._db.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("begin immediate")
        try:
            yield self._db
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def berths(self) -> list[Berth]:
        rows = self._db.execute("select code, pontoon, max_length_m, depth_m, shore_power from berth order by code")
        return [Berth(c, p, Decimal(l), Decimal(d), bool(s)) for c, p, l, d, s in rows]

    def bookings(self, since: date | None = None) -> list[Booking]:
        sql = "select id, berth, vessel, arrive, leave, status from booking"
        args: tuple = ()
        if since is not None:
            sql += " where leave > ?"
            args = (since.isoformat(),)
        sent: dict[int, list[datetime]] = {}
        for booking, at in self._db.execute("select booking, sent_at from reminder"):
            sent.setdefault(booking, []).append(datetime.fromisoformat(at))
        return [
            Booking(i, b, _vessel(v), Stay(date.fromisoformat(a), date.fromisoformat(l)), s, sent.get(i, []))
            for i, b, v, a, l, s in self._db.execute(sql + " order by id", args)
        ]

    def add(self, booking: Booking) -> None:
        with self.transaction() as db:
            db.execute(
                "insert into booking values (?, ?, ?, ?, ?, ?)",
                (booking.id, booking.berth, json.dumps(_plain(booking.vessel)), booking.stay.arrive.isoformat(),
                 booking.stay.leave.isoformat(), booking.status),
            )

    def mark_reminded(self, ids: list[int], at: datetime) -> None:
        with self.transaction() as db:
            db.executemany("insert into reminder values (?, ?)", [(i, at.isoformat()) for i in ids])


def _vessel(text: str) -> Vessel:
    raw = json.loads(text)
    return Vessel(raw["name"], Decimal(raw["length_m"]), Decimal(raw["draught_m"]), raw.get("owner_email"))


def _plain(vessel: Vessel) -> dict:
    return {"name": vessel.name, "length_m": str(vessel.length_m), "draught_m": str(vessel.draught_m),
            "owner_email": vessel.owner_email}
'''

HANDLER = '''
@route("{verb}", "/v1/{path}")
def {name}(request: Request) -> Response:
    """{doc}"""
    {arg} = {parse}
    try:
        found = {action}
    except {error} as problem:
        return Response.problem({status}, "{code}", str(problem))
    log.info("{name} %s", {arg})
    return Response.json({status_ok}, {{"{key}": {encode}}})
'''
HANDLERS = [
    dict(verb="GET", path="berths", name="list_berths", doc="All berths of the marina, or those of one pontoon.", arg="pontoon", parse='request.query.get("pontoon")',
         action="[b for b in request.store.berths() if pontoon in (None, b.pontoon)]", error="LookupError", status=404, code="no_such_pontoon", status_ok=200, key="berths", encode="[encode(b) for b in found]"),
    dict(verb="GET", path="berths/free", name="free_berths", doc="Berths a vessel fits in and can have for a stay.", arg="wish", parse="Wish.from_query(request.query)",
         action="request.ledger.free_berths(wish.vessel, wish.stay)", error="ValueError", status=422, code="bad_wish", status_ok=200, key="berths", encode="[encode(b) for b in found]"),
    dict(verb="POST", path="bookings", name="create_booking", doc="Books a berth. Answers 409 `berth_taken` when somebody else has it.", arg="wish", parse="Wish.from_json(request.body)",
         action="request.ledger.book(wish.berth, wish.vessel, wish.stay)", error="BerthTaken", status=409, code="berth_taken", status_ok=201, key="booking", encode="encode(found)"),
    dict(verb="PATCH", path="bookings/<int:id>", name="move_booking", doc="Moves a booking to another berth.", arg="order", parse="Move.from_json(request.body, request.path_args)",
         action="request.ledger.move(order.booking, order.berth)", error="BerthTaken", status=409, code="berth_taken", status_ok=200, key="booking", encode="encode(found)"),
    dict(verb="DELETE", path="bookings/<int:id>", name="cancel_booking", doc="Cancels a booking. Cancelling twice is fine.", arg="booking_id", parse='int(request.path_args["id"])',
         action="request.ledger.cancel(booking_id)", error="KeyError", status=404, code="no_such_booking", status_ok=200, key="cancelled", encode="booking_id"),
    dict(verb="GET", path="quotes", name="get_quote", doc="What a stay would cost, line by line.", arg="wish", parse="Wish.from_query(request.query)",
         action="quote(wish.vessel, wish.stay, persons=wish.persons, shore_power=wish.shore_power)", error="ValueError", status=422, code="bad_wish", status_ok=200, key="quote", encode="encode(found)"),
    dict(verb="GET", path="tides/<date:day>", name="tide_table", doc="High and low water of one harbour day.", arg="day", parse='date.fromisoformat(request.path_args["day"])',
         action="day_table(request.readings, day)", error="ValueError", status=422, code="bad_day", status_ok=200, key="tides", encode="[encode(t) for t in found]"),
    dict(verb="POST", path="gauges", name="upload_gauges", doc="Takes a gauge export and replaces the readings.", arg="text", parse="request.body.decode()",
         action="request.replace_readings(list(parse_gauges(text)))", error="BadRow", status=422, code="bad_row", status_ok=200, key="readings", encode="len(found)"),
]
API = '''"""HTTP handlers. Thin on purpose: parse, ask a module, encode."""
from __future__ import annotations

import logging
from datetime import date

from .gauges import BadRow, parse_gauges
from .ledger import BerthTaken
from .tariff import quote
from .tides import day_table
from .web import Move, Request, Response, Wish, encode, route

log = logging.getLogger("harborlog.api")
''' + "\n".join(HANDLER.format(**h) for h in HANDLERS)

CLI = '''"""harborlog serve | import-gauges FILE | remind | quote …"""
from __future__ import annotations

import argparse
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from . import config, gauges, reminders, tariff
from .mail import smtp_sender
from .models import Stay, Vessel
from .store import Store
from .web import serve


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="harborlog", description=__doc__)
    parser.add_argument("--db", type=Path, default=config.DB)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("serve")
    run.add_argument("--port", type=int, default=8320)
    load = commands.add_parser("import-gauges")
    load.add_argument("file", type=Path)
    commands.add_parser("remind")
    price = commands.add_parser("quote")
    price.add_argument("--length", type=Decimal, required=True)
    price.add_argument("--arrive", type=date.fromisoformat, required=True)
    price.add_argument("--leave", type=date.fromisoformat, required=True)
    args = parser.parse_args(argv)

    store = Store(args.db)
    if args.command == "serve":
        reminders.run(store, smtp_sender(config.SMTP), datetime.now())
        return serve(store, port=args.port)
    if args.command == "import-gauges":
        try:
            readings = gauges.read_gauges(args.file)
        except gauges.BadRow as problem:
            print(f"{args.file}: {problem}", file=sys.stderr)
            return 3
        print(f"{len(readings)} readings, {len({r.station for r in readings})} stations")
        return 0
    if args.command == "remind":
        print(reminders.run(store, smtp_sender(config.SMTP), datetime.now()))
        return 0
    vessel = Vessel("(quote)", args.length, Decimal("1.5"))
    for line in (result := tariff.quote(vessel, Stay(args.arrive, args.leave))).lines:
        print(f"{line.label:<32} {line.amount:>9.2f}")
    print(f"{'total incl. VAT':<32} {result.total:>9.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
'''

TEST_LEDGER = '''from datetime import date
from decimal import Decimal

import pytest

from harborlog.ledger import BerthTaken, BookingLedger, DoesNotFit
from harborlog.models import Berth, Stay, Vessel

SLOOP = Vessel("Kittiwake", Decimal("9.40"), Decimal("1.60"), "crew@kittiwake.example")
KETCH = Vessel("Old Fiddler", Decimal("13.20"), Decimal("2.10"))


def d(day: int) -> date:
    return date(2026, 7, day)


@pytest.fixture
def ledger() -> BookingLedger:
    return BookingLedger([Berth("A01", "A", Decimal("10"), Decimal("2.4")), Berth("C07", "C", Decimal("15"), Decimal("3.1"))])


def test_a_free_berth_can_be_booked(ledger):
    assert ledger.book("A01", SLOOP, Stay(d(3), d(5))).id == 1


def test_the_same_nights_cannot_be_sold_twice(ledger):
    ledger.book("A01", SLOOP, Stay(d(3), d(5)))
    with pytest.raises(BerthTaken):
        ledger.book("A01", SLOOP, Stay(d(4), d(6)))


def test_a_stay_inside_another_is_refused(ledger):
    ledger.book("A01", SLOOP, Stay(d(1), d(20)))
    with pytest.raises(BerthTaken):
        ledger.book("A01", SLOOP, Stay(d(8), d(9)))


def test_a_ketch_does_not_fit_a_short_berth(ledger):
    with pytest.raises(DoesNotFit):
        ledger.book("A01", KETCH, Stay(d(3), d(5)))


def test_cancelled_bookings_are_not_in_the_way(ledger):
    first = ledger.book("A01", SLOOP, Stay(d(3), d(5)))
    ledger.cancel(first.id)
    assert ledger.book("A01", SLOOP, Stay(d(3), d(5))).id == 2


def test_free_berths_are_smallest_first(ledger):
    assert [b.code for b in ledger.free_berths(SLOOP, Stay(d(3), d(5)))] == ["A01", "C07"]


def test_a_booking_does_not_stand_in_its_own_way(ledger):
    booking = ledger.book("C07", SLOOP, Stay(d(3), d(5)))
    assert ledger.move(booking.id, "C07").berth == "C07"
'''

TEST_TARIFF = '''from datetime import date
from decimal import Decimal

import pytest

from harborlog.models import Season, Stay, Vessel
from harborlog.tariff import nights_by_season, quote, season_of

CASES = [
    # length, arrive, leave, total incl. VAT, as printed on the paper price list of the harbour office
    ("9.40", date(2026, 7, 3), date(2026, 7, 5), "82.42"),
    ("9.40", date(2026, 7, 3), date(2026, 7, 10), "247.95"),
    ("13.20", date(2026, 8, 1), date(2026, 8, 22), "1022.32"),
]


def vessel(length: str) -> Vessel:
    return Vessel("Test", Decimal(length), Decimal("1.5"))


@pytest.mark.parametrize("length, arrive, leave, total", CASES)
def test_totals_match_the_price_list(length, arrive, leave, total):
    assert str(quote(vessel(length), Stay(arrive, leave)).total) == total


def test_a_stay_over_the_season_border_is_split():
    assert nights_by_season(Stay(date(2026, 5, 30), date(2026, 6, 2))) == {Season.SHOULDER: 2, Season.HIGH: 1}


@pytest.mark.parametrize("month", range(1, 13))
def test_every_month_has_a_season(month):
    assert season_of(date(2026, month, 15)) in Season


def test_shore_power_is_a_line_of_its_own():
    lines = quote(vessel("9.40"), Stay(date(2026, 7, 3), date(2026, 7, 5)), shore_power=True).lines
    assert "shore power" in [line.label for line in lines]
'''

TEST_GAUGES = '''from decimal import Decimal
from pathlib import Path

import pytest

from harborlog.gauges import BadRow, parse_gauges, read_gauges

HEAD = "station;utc;level_m;quality\\n"


def test_decimal_commas_are_read():
    assert [r.level_m for r in parse_gauges(HEAD + "west mole;2026-03-28T00:00;1,42;ok\\n")] == [Decimal("1.42")]


def test_a_short_row_names_its_number():
    with pytest.raises(BadRow, match="row 3"):
        list(parse_gauges(HEAD + "west mole;2026-03-28T00:00;1,42;ok\\nwest mole;2026-03-28T01:00\\n"))


def test_unknown_columns_are_refused():
    with pytest.raises(BadRow, match="unknown columns"):
        list(parse_gauges("when;what\\n"))
'''

TEST_TIDES = '''from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from harborlog.gauges import Reading
from harborlog.tides import day_table, extremes, under_keel


def wave(start: datetime, hours: int) -> list[Reading]:
    shape = [0, 4, 8, 10, 8, 4, 0, -4, -8, -10, -8, -4]
    return [Reading("west mole", start + timedelta(hours=h), Decimal(shape[h % 12]) / 10, "ok") for h in range(hours)]


def test_turning_points_alternate():
    kinds = [t.kind for t in extremes(wave(datetime(2026, 2, 1), 48))]
    assert kinds == ["high", "low"] * 4


@pytest.mark.parametrize("day, hours", [
    (date(2026, 2, 1), [4, 10, 16, 22]),
    (date(2026, 7, 1), [5, 11, 17, 23]),
])
def test_times_are_on_the_harbour_clock(day, hours):
    start = datetime(day.year, day.month, day.day) - timedelta(hours=12)
    assert [t.at.hour for t in day_table(wave(start, 60), day)] == hours


def test_low_water_counts_for_the_keel():
    table = day_table(wave(datetime(2026, 2, 1), 48), date(2026, 2, 1))
    assert under_keel(table, Decimal("2.40"), Decimal("1.60")) == Decimal("-0.2")
'''

TEST_REMINDERS = '''from datetime import date, datetime

import pytest

from harborlog import reminders
from harborlog.models import Stay
from tests.helpers import booking, memory_store

NOW = datetime(2026, 7, 1, 9, 0)


def test_a_stay_in_two_days_is_due():
    assert len(reminders.due([booking(arrive=date(2026, 7, 3))], NOW.date())) == 1


def test_a_stay_that_has_begun_is_not_due():
    assert reminders.due([booking(arrive=date(2026, 7, 1))], NOW.date()) == []


def test_nobody_is_reminded_twice():
    store, out = memory_store([booking(arrive=date(2026, 7, 3))]), []
    for _ in range(3):
        reminders.run(store, lambda to, text: out.append(to), NOW)
    assert len(out) == 1


def test_a_failing_address_does_not_stop_the_others():
    store, out = memory_store([booking(arrive=date(2026, 7, 3), email="bad@x.example"), booking(arrive=date(2026, 7, 3))]), []

    def send(to, text):
        if to.startswith("bad"):
            raise OSError("550 no such user")
        out.append(to)

    assert reminders.run(store, send, NOW) == 1
'''

API_CASES = ["ok", "empty body", "unknown field", "wrong type", "not found", "no token", "expired token", "utf-8 name"]
TEST_API = '''import pytest

from tests.helpers import client, make_vessel

CASES = ["ok", "empty body", "unknown field", "wrong type", "not found", "no token", "expired token", "utf-8 name"]

''' + "\n\n".join(f'''@pytest.mark.parametrize("case", CASES)
def test_{h["name"]}(case):
    answer = client().replay("{h["name"]}", case)
    assert answer.status == answer.expected, answer.text
''' for h in HANDLERS) + '''

def test_arriving_on_the_day_another_leaves_is_refused():
    c = client()
    assert c.post("/v1/bookings", make_vessel("A01", "2026-07-03", "2026-07-05")).status == 201
    assert c.post("/v1/bookings", make_vessel("A01", "2026-07-05", "2026-07-08")).status == 409
'''

README = '''# harborlog

Berth bookings, tides and prices for a small marina. One SQLite file, no framework, Python 3.11.

    python -m venv .venv && .venv/bin/pip install -e .[dev]
    python -m pytest
    python -m harborlog.cli serve --port 8320

## What is where
| module | job |
|---|---|
| `ledger.py` | who lies where; every rule about double bookings |
| `tariff.py` | what a stay costs (the price list of the office is the truth: `docs/prices-2026.pdf`) |
| `gauges.py` | reads the hourly gauge export |
| `tides.py` | high and low water on the harbour clock |
| `reminders.py` | one mail, two days before arrival |
| `store.py` | SQLite |
| `api.py`, `web.py` | HTTP |

## Rules of the house
- A stay is counted in nights. The guest of the night before is gone by noon, the next one comes from 14:00.
- Money is rounded once, per line, half up.
- Nothing is sent to a guest twice.
'''

BOOKINGS_MD = '''# Bookings

A booking is a berth, a vessel and a stay. A stay has an arrival day and a departure day.

## Conflicts
Two bookings of one berth conflict when their days overlap. The answer is then `409 berth_taken`, with the id of the booking
that is in the way.

## Changes
A booking can be moved to a free berth and cancelled. It cannot be made longer: the office books the extra nights as a booking of
their own and moves either if needed.
'''

CHANGELOG = '''# Changelog

## Unreleased

## 0.6.2
- `GET /v1/berths/free` sorts by length, so that long berths stay free for long vessels.
- The gauge import accepts decimal commas.

## 0.6.1
- Shore power is a line of its own on the invoice.
'''

PYPROJECT = '''[project]
name = "harborlog"
version = "0.6.2"
requires-python = ">=3.11"
dependencies = []

[project.optional-dependencies]
dev = ["pytest>=8", "ruff>=0.6"]

[tool.ruff]
line-length = 130
lint.select = ["E", "F", "I", "B", "UP"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-ra"
'''

WEB = '''"""A router of eighty lines, so that there is no framework to keep up with."""
from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from .models import Stay, Vessel

ROUTES: list[tuple[str, re.Pattern[str], Callable]] = []
KINDS = {"int": r"\\d+", "date": r"\\d{4}-\\d{2}-\\d{2}"}


def route(verb: str, path: str) -> Callable:
    pattern = re.sub(r"<(\\w+):(\\w+)>", lambda m: f"(?P<{m[2]}>{KINDS[m[1]]})", path)

    def keep(handler: Callable) -> Callable:
        ROUTES.append((verb, re.compile(pattern + "/?$"), handler))
        return handler

    return keep


@dataclass
class Response:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, status: int, value: Any) -> "Response":
        return cls(status, json.dumps(value, ensure_ascii=False).encode(), {"content-type": "application/json"})

    @classmethod
    def problem(cls, status: int, code: str, detail: str) -> "Response":
        return cls.json(status, {"error": {"code": code, "detail": detail}})


@dataclass(frozen=True)
class Wish:
    berth: str | None
    vessel: Vessel
    stay: Stay
    persons: int = 2
    shore_power: bool = False

    @classmethod
    def from_json(cls, body: bytes) -> "Wish":
        return cls.from_query(json.loads(body))

    @classmethod
    def from_query(cls, raw: dict[str, Any]) -> "Wish":
        vessel = Vessel(raw.get("vessel", "?"), Decimal(raw["length"]), Decimal(raw.get("draught", "1.5")), raw.get("email"))
        stay = Stay(date.fromisoformat(raw["arrive"]), date.fromisoformat(raw["leave"]))
        return cls(raw.get("berth"), vessel, stay, int(raw.get("persons", 2)), str(raw.get("shore_power")) == "true")


def encode(value: Any) -> Any:
    if is_dataclass(value):
        return {k: encode(v) for k, v in asdict(value).items()}
    if isinstance(value, dict):
        return {k: encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    return value if isinstance(value, (int, float, bool, type(None))) else str(value)
'''

VESSELS = ["Kittiwake", "Old Fiddler", "Sanderling", "Brise d'Ouest", "Mjölnir", "Anna Katharina", "Second Wind", "Zeezwaluw", "Hoppetosse", "Grey Heron",
           "Plover", "Tern of Hythe", "Lady Brackish", "Windsbraut", "Petrel", "Nordlys", "Curlew", "Ebb and Flo", "Sea Thrift", "Marsh Harrier"]


def berths_json(rng):
    rows = []
    for pontoon, count in (("A", 16), ("B", 18), ("C", 14), ("D", 12)):
        for i in range(1, count + 1):
            rows.append({"code": f"{pontoon}{i:02}", "pontoon": pontoon, "max_length_m": f"{rng.choice([8, 10, 10, 12, 15, 18])}.00",
                         "depth_m": f"{rng.uniform(2.0, 3.6):.2f}", "shore_power": rng.random() < .6, "cleats": rng.choice([4, 4, 6]),
                         "surveyed": f"202{rng.randint(3, 5)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"})
    return json.dumps({"berths": rows}, indent=2, ensure_ascii=False) + "\n"


def bookings_json(rng, count=62):
    rows = []
    for i in range(count):
        arrive = rng.randint(1, 27)
        rows.append({"id": 4100 + i, "berth": f"{rng.choice('ABCD')}{rng.randint(1, 14):02}", "vessel": {"name": rng.choice(VESSELS), "length_m": f"{rng.uniform(6.5, 15):.2f}",
                     "draught_m": f"{rng.uniform(.9, 2.4):.2f}", "owner_email": f"crew{rng.randint(100, 999)}@mail.example"},
                     "stay": {"arrive": f"2026-07-{arrive:02}", "leave": f"2026-07-{arrive + rng.randint(1, 4):02}"}, "status": rng.choice(["confirmed"] * 6 + ["cancelled", "checked_in"]),
                     "created": f"2026-0{rng.randint(1, 6)}-{rng.randint(1, 28):02}T{rng.randint(7, 21):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}Z", "channel": rng.choice(["web", "phone", "walk-in"])})
    return json.dumps({"bookings": rows}, indent=1, ensure_ascii=False) + "\n"


def gauges_csv(rng):
    """As the office exports it: a BOM in front, and no line feed after the last row."""
    rows = ["station;utc;level_m;quality"]
    for station, shift in (("west mole", 0), ("lock", 1), ("fairway 3", 2)):
        for h in range(72):
            level = [0.1, .5, .9, 1.2, 1.4, 1.2, .8, .3, -.2, -.5, -.6, -.3][(h + shift) % 12] + rng.uniform(-.05, .05)
            rows.append(f"{station};2026-03-{28 + h // 24}T{h % 24:02}:00;{level:.2f};{rng.choice(['ok'] * 9 + ['est'])}".replace(".", ","))
    return "\ufeff" + "\n".join(rows)


def server_log(rng, lines=260):
    out, second = [], 6 * 3600
    for n in range(lines):
        second += rng.randint(1, 90)
        stamp = f"2026-06-30 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02},{rng.randint(0, 999):03}"
        kind = rng.random()
        if n in (70, 171):
            out.append(f"{stamp} WARNING harborlog.web received SIGTERM, draining 3 connections")
            out.append(f"{stamp} INFO    harborlog.web listening on 127.0.0.1:8320 (pid {4000 + n * 7})")
        elif n % 23 == 0 or n in (72, 173):
            due = rng.randint(9, 14)
            out += [f"{stamp} INFO    harborlog.mail 250 queued as {rng.getrandbits(40):010X} for crew{rng.randint(100, 999)}@mail.example" for _ in range(3)]
            out.append(f"{stamp} INFO    harborlog.reminders reminders: {due} due, {due} sent")
        elif kind < .7:
            out.append(f"{stamp} INFO    harborlog.api {rng.choice([h['name'] for h in HANDLERS])} {rng.choice(['None', 'A', 'B', 'C07', '2026-07-03', '4127'])} {rng.randint(2, 90)} ms")
        elif kind < .93:
            out.append(f"{stamp} DEBUG   harborlog.store {rng.choice(['begin immediate', 'commit', 'wal checkpoint: 0 busy, ' + str(rng.randint(3, 80)) + ' pages'])}")
        else:
            out.append(f"{stamp} WARNING harborlog.api slow request: {rng.choice(['list_berths', 'tide_table', 'free_berths'])} took {rng.randint(700, 2400)} ms")
    return "\n".join(out) + "\n"


def files(seed=7):
    rng = random.Random(seed)
    return {
        "README.md": README, "CHANGELOG.md": CHANGELOG, "pyproject.toml": PYPROJECT, "docs/bookings.md": BOOKINGS_MD,
        "harborlog/__init__.py": "", "harborlog/models.py": MODELS, "harborlog/ledger.py": LEDGER, "harborlog/tariff.py": TARIFF, "harborlog/gauges.py": GAUGES,
        "harborlog/tides.py": TIDES, "harborlog/reminders.py": REMINDERS, "harborlog/store.py": STORE, "harborlog/api.py": API, "harborlog/web.py": WEB, "harborlog/cli.py": CLI,
        "tests/test_ledger.py": TEST_LEDGER, "tests/test_tariff.py": TEST_TARIFF, "tests/test_gauges.py": TEST_GAUGES, "tests/test_tides.py": TEST_TIDES,
        "tests/test_reminders.py": TEST_REMINDERS, "tests/test_api.py": TEST_API,
        "data/berths.json": berths_json(rng), "var/harborlog.log": server_log(rng),
    }
