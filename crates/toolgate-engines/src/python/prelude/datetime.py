def _tg_make_datetime(native_re, datetime, date, timedelta, timezone, isinstance=isinstance, int=int, str=str, len=len, abs=abs, range=range, max=max):
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

    months = "january february march april may june july august september october november december".split()
    days = "monday tuesday wednesday thursday friday saturday sunday".split()
    forms = {
        "Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "1[0-2]|0[1-9]|[1-9]", "d": "3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9]",
        "H": "2[0-3]|[01][0-9]|[0-9]", "I": "1[0-2]|0[1-9]|[1-9]", "M": "[0-5][0-9]|[0-9]", "S": "6[01]|[0-5][0-9]|[0-9]",
        "f": "[0-9]{1,6}", "j": "36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]", "p": "am|pm",
        "B": "|".join(months), "b": "|".join([name[:3] for name in months]), "A": "|".join(days), "a": "|".join([name[:3] for name in days]),
        "w": "[0-6]", "u": "[1-7]", "z": "[+-][0-9]{2}:?[0-5][0-9](?::?[0-5][0-9])?|(?-i:Z)", "Z": "utc|gmt",
    }
    compiled = {}

    def compile_pattern(pattern):
        for part, whole in (("%c", "%a %b %d %H:%M:%S %Y"), ("%x", "%m/%d/%y"), ("%X", "%H:%M:%S")):
            pattern = pattern.replace(part, whole)
        source, index, seen = [], 0, []
        while index < len(pattern):
            part = pattern[index]
            index += 1
            if part == "%":
                part = pattern[index:index + 1]
                index += 1
                if part == "%":
                    source.append("%")
                    continue
                if part in ("U", "W", "V", "G"):
                    _tg_refuse(f"strptime() with %{part}: use date.fromisoformat('2024-W05-1')")
                if part not in forms:
                    raise ValueError(f"'{part}' is a bad directive in format {pattern!r}" if part else f"stray % in format {pattern!r}")
                if part in seen:
                    raise ValueError(f"redefinition of group name '{part}'")
                seen.append(part)
                source.append(f"(?P<{part}>{forms[part]})")
            elif part.isspace():
                if source[-1:] != ["\\s+"]:
                    source.append("\\s+")
            else:
                source.append(native_re.escape(part))
        return native_re.compile("".join(source), native_re.IGNORECASE)

    def strptime(kind, *rest):
        if kind != datetime or len(rest) != 2 or not isinstance(rest[0], str) or not isinstance(rest[1], str):
            return kind.strptime(*rest)
        text, pattern = rest
        if pattern not in compiled:
            compiled[pattern] = compile_pattern(pattern)
        match = compiled[pattern].match(text)
        if match is None:
            raise ValueError(f"time data {text!r} does not match format {pattern!r}")
        if match.end() != len(text):
            raise ValueError(f"unconverted data remains: {text[match.end():]}")
        found = match.groupdict()

        def number(name, fallback):
            return int(found[name]) if name in found else fallback

        year = number("Y", 1900)
        if "y" in found:
            year = number("y", 0) + (2000 if number("y", 0) <= 68 else 1900)
        month = number("m", 1)
        if "B" in found:
            month = months.index(found["B"].lower()) + 1
        elif "b" in found:
            month = [name[:3] for name in months].index(found["b"].lower()) + 1
        day, hour = number("d", 1), number("H", 0)
        if "I" in found:
            hour = number("I", 0) % 12 + (12 if found.get("p", "am").lower() == "pm" else 0)
        second = number("S", 0)
        fraction = int((found["f"] + "00000")[:6]) if "f" in found else 0
        zone = None
        if "z" in found:
            digits_of = found["z"][1:].replace(":", "")
            seconds = 0 if found["z"] == "Z" else int(digits_of[:2]) * 3600 + int(digits_of[2:4]) * 60 + int(digits_of[4:] or "0")
            zone = timezone(timedelta(seconds=-seconds if found["z"][0] == "-" else seconds)) if seconds else timezone.utc
        if "j" in found and "d" not in found:
            start = datetime(year, 1, 1) + timedelta(days=number("j", 1) - 1)
            month, day = start.month, start.day
        return datetime(year, month, day, hour, number("M", 0), second, fraction, tzinfo=zone)

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

    def fromisoformat(kind, *rest):
        if kind not in (datetime, date) or len(rest) != 1 or not isinstance(rest[0], str):
            return kind.fromisoformat(*rest)
        try:
            return kind.fromisoformat(rest[0])
        except ValueError:
            plain = extended(rest[0], kind == datetime)
            if plain is None:
                raise
        return kind.fromisoformat(plain)

    def extended(text, has_time):
        # The forms of ISO 8601 that Monty does not read, in one that it reads.
        day, rest = day_of(text)
        if day is None:
            return None
        if not rest:
            return day + "T00:00:00" if has_time else day
        if not has_time:
            return None
        clock = rest[1:]
        at = max(clock.rfind("+"), clock.rfind("-"), clock.rfind("Z"))
        zone = ""
        if at >= 0:
            clock, zone = clock[:at], clock[at:]
            if zone != "Z":
                offset = clock_of(zone[1:])
                if offset is None:
                    return None
                zone = zone[0] + (offset[:5] if offset[5:] == ":00" else offset)
            else:
                zone = "+00:00"
        shown = clock_of(clock)
        return None if shown is None else f"{day}T{shown}{zone}"

    def day_of(text):
        year, rest = text[:4], text[4:]
        if len(year) < 4 or not digits(year):
            return None, ""
        dash = "-" if rest[:1] == "-" else ""
        rest = rest[len(dash):]
        if rest[:1] == "W":
            week, rest = rest[1:3], rest[3:]
            weekday = "1"
            if rest[:len(dash)] == dash and rest[len(dash):len(dash) + 1].isdigit():
                weekday, rest = rest[len(dash)], rest[len(dash) + 1:]
            if len(week) < 2 or not digits(week) or not 1 <= int(weekday) <= 7 or not 1 <= int(week) <= weeks(int(year)):
                return None, ""
            fourth = date(int(year), 1, 4)
            day = fourth + timedelta(days=int(week) * 7 - 7 + int(weekday) - fourth.isoweekday())
            return f"{day.year:04d}-{day.month:02d}-{day.day:02d}", rest
        month, rest = rest[:2], rest[2:]
        if rest[:len(dash)] != dash:
            return None, ""
        day, rest = rest[len(dash):len(dash) + 2], rest[len(dash) + 2:]
        if len(month) < 2 or len(day) < 2 or not digits(month + day):
            return None, ""
        return f"{year}-{month}-{day}", rest

    def weeks(year):
        return 53 if date(year, 1, 1).isoweekday() == 4 or date(year, 12, 31).isoweekday() == 4 else 52

    def clock_of(text):
        text = text.replace(",", ".")
        whole, _, fraction = text.partition(".")
        colon = ":" if ":" in whole else ""
        if colon:
            parts = whole.split(":")
        else:
            parts = [whole[at:at + 2] for at in range(0, len(whole), 2)]
        if not 1 <= len(parts) <= 3 or [part for part in parts if len(part) != 2 or not digits(part)]:
            return None
        if "." in text:
            if len(parts) < 3 or not fraction or not digits(fraction):
                return None
            return ":".join(parts) + "." + (fraction + "000000")[:6]
        return ":".join(parts + ["00"] * (3 - len(parts)))

    def digits(text):
        return text.isascii() and text.isdigit()

    return fromisoformat, utcoffset, tzname, strftime, strptime, isoformat


import datetime as _tg_own_datetime, re as _tg_own_re

_tg_fromisoformat, _tg_utcoffset, _tg_tzname, _tg_strftime, _tg_strptime, _tg_isoformat = _tg_make_datetime(_tg_own_re, _tg_own_datetime.datetime, _tg_own_datetime.date, _tg_own_datetime.timedelta, _tg_own_datetime.timezone)
_tg_datetime = _tg_module("datetime", {"UTC": _tg_own_datetime.timezone.utc})
