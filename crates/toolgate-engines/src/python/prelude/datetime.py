def _tg_make_datetime(datetime, date, timedelta, timezone, isinstance=isinstance, int=int, str=str, len=len, abs=abs):
    def offset_of(zone):
        # A zone does not tell its offset; the difference of two moments does.
        return datetime(2000, 1, 3, tzinfo=timezone.utc) - datetime(2000, 1, 3, tzinfo=zone)

    def offset_text(zone, separator):
        if zone is None:
            return ""
        offset = offset_of(zone)
        seconds = offset.days * 86400 + offset.seconds
        size = abs(seconds)
        text = ("-" if seconds < 0 else "+") + f"{size // 3600:02d}{separator}{size // 60 % 60:02d}"
        return text + f"{separator}{size % 60:02d}" if size % 60 else text

    def utcoffset(moment, *rest):
        if not isinstance(moment, datetime):
            return moment.utcoffset(*rest)
        return None if moment.tzinfo is None else offset_of(moment.tzinfo)

    def tzname(moment, *rest):
        if not isinstance(moment, datetime):
            return moment.tzname(*rest)
        return None if moment.tzinfo is None else str(moment.tzinfo)

    def strftime(moment, *rest):
        if not isinstance(moment, (date, datetime)) or len(rest) != 1:
            return moment.strftime(*rest)
        zone = moment.tzinfo if isinstance(moment, datetime) else None
        fraction = moment.microsecond if isinstance(moment, datetime) else 0
        name = "" if zone is None else str(zone)
        parts = []
        for part in rest[0].split("%%"):
            part = part.replace("%f", f"{fraction:06d}").replace("%z", offset_text(zone, ""))
            parts.append(part.replace("%Z", name))
        return moment.strftime("%%".join(parts))

    def strptime(kind, *rest):
        if kind != datetime or len(rest) != 2 or not rest[1].endswith("%z"):
            return kind.strptime(*rest)
        text, pattern = rest[0], rest[1][:-2]
        if text.endswith("Z"):
            return datetime.strptime(text[:-1], pattern).replace(tzinfo=timezone.utc)
        at = text.rfind("+") if "+" in text else text.rfind("-")
        digits = text[at + 1:].replace(":", "")
        if at < 0 or len(digits) not in (4, 6) or not digits.isdigit():
            raise ValueError(f"time data {text!r} does not match format {rest[1]!r}")
        seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + (int(digits[4:]) if len(digits) == 6 else 0)
        zone = timezone(timedelta(seconds=-seconds if text[at] == "-" else seconds)) if seconds else timezone.utc
        return datetime.strptime(text[:at], pattern).replace(tzinfo=zone)

    def isoformat(moment, sep="T", timespec="auto"):
        if not isinstance(moment, datetime):
            return moment.isoformat(timespec=timespec)
        clock = f"{moment.hour:02d}"
        exact = f"{moment.microsecond:06d}"
        if timespec == "auto":
            timespec = "microseconds" if moment.microsecond else "seconds"
        if timespec not in ("hours", "minutes", "seconds", "milliseconds", "microseconds"):
            raise ValueError("Unknown timespec value")
        if timespec != "hours":
            clock += f":{moment.minute:02d}"
        if timespec not in ("hours", "minutes"):
            clock += f":{moment.second:02d}"
        if timespec == "milliseconds":
            clock += "." + exact[:3]
        if timespec == "microseconds":
            clock += "." + exact
        return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}{sep}{clock}{offset_text(moment.tzinfo, ':')}"

    return utcoffset, tzname, strftime, strptime, isoformat


import datetime as _tg_own_datetime

_tg_utcoffset, _tg_tzname, _tg_strftime, _tg_strptime, _tg_isoformat = _tg_make_datetime(_tg_own_datetime.datetime, _tg_own_datetime.date, _tg_own_datetime.timedelta, _tg_own_datetime.timezone)
_tg_datetime = _tg_module("datetime", {"UTC": _tg_own_datetime.timezone.utc})
