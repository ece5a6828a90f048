def _tg_make_methods(datetime, date, time, timedelta, timezone, isinstance=isinstance, int=int, float=float, str=str, set=set, bin=bin, abs=abs, hasattr=hasattr, len=len, ord=ord, iter=iter, round=round, list=list, chr=chr, type=type, getattr=getattr, bytes=bytes, enumerate=enumerate):
    epoch = datetime(1970, 1, 1)

    def delta(days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        # Monty takes whole numbers only.
        total = microseconds + milliseconds * 1000 + (seconds + minutes * 60 + hours * 3600) * 1000000 + (days + weeks * 7) * 86400000000
        total = total if isinstance(total, int) else round(total)
        return timedelta(days=total // 86400000000, seconds=total // 1000000 % 86400, microseconds=total % 1000000)

    def is_kind(value, kind):
        return value == kind

    def from_timestamp(kind, seconds, tz=None):
        if is_kind(kind, date):
            moment = epoch + delta(seconds=seconds)
            return date(moment.year, moment.month, moment.day)
        if not is_kind(kind, datetime):
            return kind.fromtimestamp(seconds, tz)
        moment = epoch + delta(seconds=seconds)
        if tz is None:
            return moment
        return as_timezone(moment.replace(tzinfo=timezone.utc), tz)

    def from_timestamp_utc(kind, seconds):
        return epoch + delta(seconds=seconds)

    def now_utc(kind):
        return datetime.now(timezone.utc).replace(tzinfo=None)

    def combined(kind, day, clock, tzinfo=None):
        if not is_kind(kind, datetime):
            return kind.combine(day, clock)
        zone = tzinfo if tzinfo is not None else clock.tzinfo
        return datetime(day.year, day.month, day.day, clock.hour, clock.minute, clock.second, clock.microsecond, tzinfo=zone)

    def offset_of(zone):
        # A zone does not tell its offset; the difference of two moments does.
        moment = datetime(2000, 1, 3, tzinfo=zone)
        return datetime(2000, 1, 3, tzinfo=timezone.utc) - moment

    def as_timezone(moment, tz=None):
        if not isinstance(moment, datetime):
            return moment.astimezone(tz)
        zone = timezone.utc if tz is None else tz
        source = timezone.utc if moment.tzinfo is None else moment.tzinfo
        shifted = moment.replace(tzinfo=None) - offset_of(source) + offset_of(zone)
        return shifted.replace(tzinfo=zone)

    def iso_calendar(day):
        if not isinstance(day, (date, datetime)):
            return day.isocalendar()
        here = date(day.year, day.month, day.day)
        weekday = here.isoweekday()
        thursday = here + timedelta(days=4 - weekday)
        week = ((thursday - date(thursday.year, 1, 1)).days) // 7 + 1
        return _tg_iso_date(thursday.year, week, weekday)

    def bit_length(number):
        return number.bit_length() if not isinstance(number, int) else (0 if number == 0 else len(bin(abs(number))) - 2)

    def is_integer(number):
        if isinstance(number, float):
            return number == number and number not in (float("inf"), float("-inf")) and number == int(number)
        return True if isinstance(number, int) else number.is_integer()

    def translate(text, table):
        if not isinstance(text, str):
            return text.translate(table)
        parts = []
        for character in text:
            code = ord(character)
            if code not in table:
                parts.append(character)
                continue
            value = table[code]
            if value is not None:
                parts.append(chr(value) if isinstance(value, int) else value)
        return "".join(parts)

    def folded(character):
        if "\u13a0" <= character <= "\u13fd" or "\uab70" <= character <= "\uabbf":
            return character.upper()
        return character if character == "\u0131" else character.upper().lower()

    def case_fold(text):
        # A text as a whole has other small letters at the ends of words.
        return text.lower() if text.isascii() else "".join([folded(character) for character in text])

    def has_title_case(text):
        # Letters whose form at the start of a word is not their capital letter.
        return not text.isascii() and [1 for c in text if c > "\x7f" and (len(c.upper()) != 1 or c in "ǄǅǆǇǈǉǊǋǌǱǲǳ" or "\u10d0" <= c <= "\u10ff")]

    def capitalize(text):
        if isinstance(text, str) and has_title_case(text[:1]):
            _tg_refuse("capitalize() of a letter without a single capital letter, such as ß: write the text out")
        return text.capitalize()

    def title(text, *more):
        if isinstance(text, str) and has_title_case(text):
            _tg_refuse("title() of letters without a single capital letter, such as ß: write the text out")
        return text.title(*more)

    def center(text, width, fill=" "):
        if not isinstance(text, str):
            return text.center(width, fill)
        missing = width - len(text)
        if missing <= 0 or len(fill) != 1:
            return text.center(width, fill)
        left = missing // 2 + (missing & width & 1)
        return fill * left + text + fill * (missing - left)

    def split_lines(text, keepends=False):
        if isinstance(text, str) and [mark for mark in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029" if mark in text]:
            _tg_refuse("splitlines() of a text with form feeds or the like: use split('\\n')")
        return text.splitlines(keepends)

    def from_iterable(kind, collections):
        return iter([value for collection in collections for value in collection])

    def to_ordinal(day):
        if not isinstance(day, (date, datetime)):
            return day.toordinal()
        return (date(day.year, day.month, day.day) - date(1, 1, 1)).days + 1

    def from_ordinal(kind, number):
        if kind == date:
            return date(1, 1, 1) + timedelta(days=number - 1)
        if kind == datetime:
            return datetime(1, 1, 1) + timedelta(days=number - 1)
        return kind.fromordinal(number)

    def time_tuple(moment):
        if not isinstance(moment, (date, datetime)):
            return moment.timetuple()
        _tg_refuse("timetuple(): use the parts, such as moment.year, moment.weekday() and int(moment.strftime('%j'))")

    latin = ("latin-1", "latin1", "iso-8859-1", "iso8859-1", "l1", "cp819")

    def is_latin(encoding):
        return encoding.lower().replace("_", "-") in latin

    def unknown(encoding):
        _tg_refuse(f"the encoding {encoding}: there are utf-8, utf-16, utf-32, ascii and latin-1")

    def encode(text, encoding="utf-8", errors="strict"):
        if not isinstance(text, str):
            return text.encode(encoding, errors)
        if not is_latin(encoding):
            try:
                return text.encode(encoding, errors)
            except LookupError:
                unknown(encoding)
        codes = []
        for index, character in enumerate(text):
            code = ord(character)
            if code < 256:
                codes.append(f"{code:02x}")
            elif errors == "replace":
                codes.append("3f")
            elif errors == "strict":
                shown = f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
                raise UnicodeEncodeError(f"'latin-1' codec can't encode character '{shown}' in position {index}: ordinal not in range(256)")
            elif errors != "ignore":
                _tg_refuse(f"encode() to latin-1 with errors={errors!r}: use 'ignore' or 'replace'")
        return bytes.fromhex("".join(codes))

    def decode(value, encoding="utf-8", errors="strict"):
        if not isinstance(value, bytes):
            return value.decode(encoding, errors)
        if is_latin(encoding):
            return "".join([chr(byte) for byte in value])
        try:
            return value.decode(encoding, errors)
        except LookupError:
            unknown(encoding)

    def difference_update(own, *others):
        if not isinstance(own, set):
            return own.difference_update(*others)
        for other in others:
            for item in list(other):
                own.discard(item)

    def intersection_update(own, *others):
        if not isinstance(own, set):
            return own.intersection_update(*others)
        for other in others:
            kept = set(other)
            for item in list(own):
                if item not in kept:
                    own.discard(item)

    def extreme(kind, name):
        if type(kind).__name__ == "type" and name in ("max", "min"):
            is_last = name == "max"
            if kind == datetime:
                return datetime(9999, 12, 31, 23, 59, 59, 999999) if is_last else datetime(1, 1, 1)
            if kind == date:
                return date(9999, 12, 31) if is_last else date(1, 1, 1)
            if kind == timedelta or kind == time:
                _tg_refuse(f"the {name} of timedelta and time: write the value itself")
        elif kind in (datetime, date, timedelta, time):
            _tg_refuse("the resolution of dates and times: write timedelta(microseconds=1)")
        return getattr(kind, name)

    return [extreme, from_timestamp, from_timestamp_utc, now_utc, combined, as_timezone, iso_calendar, bit_length, is_integer, translate, case_fold, split_lines, difference_update, intersection_update, from_iterable, delta, capitalize, title, center, to_ordinal, from_ordinal, time_tuple, encode, decode]


import collections as _tg_native_collections, datetime as _tg_native_datetime

_tg_iso_date = _tg_native_collections.namedtuple("IsoCalendarDate", "year week weekday")
_tg_extreme, _tg_fromtimestamp, _tg_utcfromtimestamp, _tg_utcnow, _tg_combine, _tg_astimezone, _tg_isocalendar, _tg_bit_length, _tg_is_integer, _tg_translate, _tg_casefold, _tg_splitlines, _tg_difference_update, _tg_intersection_update, _tg_from_iterable, _tg_timedelta, _tg_capitalize, _tg_title, _tg_center, _tg_toordinal, _tg_fromordinal, _tg_timetuple, _tg_encode, _tg_decode = _tg_make_methods(_tg_native_datetime.datetime, _tg_native_datetime.date, _tg_native_datetime.time, _tg_native_datetime.timedelta, _tg_native_datetime.timezone)
