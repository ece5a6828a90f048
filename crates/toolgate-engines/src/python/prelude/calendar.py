import datetime as _tg_native_datetime


def _tg_make_calendar(date):
    months = ["", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

    def isleap(year):
        return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)

    def monthrange(year, month):
        if not 1 <= month <= 12:
            raise ValueError(f"bad month number {month}; must be 1-12")
        length = 29 if month == 2 and isleap(year) else [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
        return date(year, month, 1).weekday(), length

    def weekday(year, month, day):
        return date(year, month, day).weekday()

    return _tg_module("calendar", {"isleap": isleap, "monthrange": monthrange, "weekday": weekday, "month_name": months, "day_name": days, "month_abbr": [name[:3] for name in months], "day_abbr": [name[:3] for name in days]})


_tg_calendar = _tg_make_calendar(_tg_native_datetime.date)
