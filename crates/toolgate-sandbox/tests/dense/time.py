# ---- dates and arithmetic
from datetime import datetime, date, time, timedelta, timezone
import calendar
d = date(2024, 2, 28)
print(d + timedelta(days=2), d.weekday(), d.isoweekday(), d.isocalendar(), d.replace(day=1), (date(2024, 12, 25) - d).days, d.strftime("%a %d %b %Y %j %U"), d.toordinal())
t = datetime(2024, 3, 10, 1, 59, 30, 123456, tzinfo=timezone.utc)
print(t.isoformat(), t.timestamp(), t.astimezone(timezone(timedelta(hours=5, minutes=30), "IST")), t.date(), t.time(), t.strftime("%Y-%m-%dT%H:%M:%S.%f%z %I%p %Z %y %-d"), t.timetuple().tm_yday)
print(datetime.fromisoformat("2024-01-02T03:04:05.678+02:00"), datetime.fromisoformat("2024-01-02"), datetime.strptime("05/Mar/2021:14:30 -0700", "%d/%b/%Y:%H:%M %z"), datetime.fromtimestamp(0, timezone.utc), datetime.combine(d, time(7, 30)))
delta = timedelta(days=-1, hours=5, seconds=30.5)
print(delta, repr(delta), delta.total_seconds(), abs(delta), timedelta(hours=36) / timedelta(days=1), timedelta(minutes=90) // 2, timedelta(days=1) > timedelta(hours=23), divmod(timedelta(hours=25), timedelta(days=1)), -timedelta(1))
print(calendar.monthrange(2024, 2), calendar.isleap(1900), calendar.month_name[3], calendar.monthcalendar(2024, 2)[0], calendar.TextCalendar().formatmonth(2024, 2).splitlines()[2])
print(sorted([date(2024, 5, 1), date(2023, 1, 1)]), max(t, t + timedelta(1)), time(23, 59).isoformat(), time.fromisoformat("04:05:06"), date.fromisocalendar(2024, 1, 1), date.min, datetime.max)
t - datetime(2024, 1, 1)

# ---- time zones
from zoneinfo import ZoneInfo, available_timezones, ZoneInfoNotFoundError
from datetime import datetime, timedelta, timezone
berlin, ny, tokyo = (ZoneInfo(z) for z in ("Europe/Berlin", "America/New_York", "Asia/Tokyo"))
meeting = datetime(2024, 3, 31, 1, 30, tzinfo=berlin)
print(meeting, meeting + timedelta(hours=1), (meeting.astimezone(timezone.utc) + timedelta(hours=1)).astimezone(berlin), meeting.utcoffset(), meeting.dst(), meeting.tzname())
print(meeting.astimezone(ny), meeting.astimezone(tokyo).isoformat(), datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=0).utcoffset(), datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=1).utcoffset())
print(datetime(1950, 6, 1, tzinfo=ZoneInfo("Europe/London")).utcoffset(), datetime(2050, 7, 1, tzinfo=ny).utcoffset(), str(berlin), berlin.key, ZoneInfo("UTC") is ZoneInfo("UTC"), "Europe/Paris" in available_timezones())
print(datetime.fromtimestamp(1_700_000_000, ZoneInfo("Australia/Sydney")), meeting.strftime("%H:%M %Z%z"))
try: ZoneInfo("Mars/Olympus")
except ZoneInfoNotFoundError as e: print("no zone", e)
print((datetime(2024, 11, 3, 12, tzinfo=ny) - datetime(2024, 11, 2, 12, tzinfo=ny)), ZoneInfo.no_cache("Asia/Kolkata").utcoffset(datetime(2024, 1, 1)))
datetime.strptime("2024-13-01", "%Y-%m-%d")

# ---- the time module
import time
t = time.gmtime(1_700_000_000)
print(t.tm_year, t.tm_yday, time.strftime("%Y-%m-%d %H:%M:%S", t), time.asctime(t), time.mktime(t) == 1_700_000_000, time.strptime("30 Nov 00", "%d %b %y").tm_mon)
print(time.localtime(0).tm_hour, time.ctime(86400), time.timezone, time.tzname[0], time.struct_time(range(9)).tm_mday)
a = time.time(); b = time.monotonic(); c = time.perf_counter_ns(); time.sleep(0.01)
print(time.time() >= a + 0.009, time.monotonic() - b >= 0.009, time.perf_counter_ns() - c >= 9_000_000, time.time_ns() // 10 ** 9 - int(time.time()) in (0, -1, 1))
class Stopwatch:
    clock = time.perf_counter
    def __enter__(self): self.t0 = self.clock(); return self
    def __exit__(self, *a): self.took = self.clock() - self.t0
with Stopwatch() as w: time.sleep(0.002)
print(w.took >= 0.001)
from datetime import datetime, date, timezone
print(abs(datetime.now().timestamp() - time.time()) < 5, date.today() == datetime.now().date(), datetime.now(timezone.utc).tzinfo, type(datetime.now()) is datetime)
class MyDate(datetime): pass
print(type(MyDate.now()).__name__, type(MyDate.today()).__name__, isinstance(datetime.utcnow(), datetime) if False else True)
time.sleep(-1)

# ---- schedules and intervals
from datetime import date, datetime, timedelta
import heapq, bisect
def business_days(start, n):
    day = start
    while n:
        day += timedelta(1)
        if day.weekday() < 5: n -= 1
    return day
print(business_days(date(2024, 3, 28), 3), business_days(date(2024, 3, 29), 1))
events = [(datetime(2024, 1, 1, 9), datetime(2024, 1, 1, 10)), (datetime(2024, 1, 1, 9, 30), datetime(2024, 1, 1, 11)), (datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13))]
merged = []
for s, e in sorted(events):
    if merged and s <= merged[-1][1]: merged[-1] = (merged[-1][0], max(e, merged[-1][1]))
    else: merged.append((s, e))
print([(f"{s:%H:%M}", f"{e:%H:%M}") for s, e in merged], sum(((e - s) for s, e in merged), timedelta()))
heap = []
for prio, name in [(3, "c"), (1, "a"), (2, "b")]: heapq.heappush(heap, (prio, name))
print(heapq.nsmallest(2, heap), heapq.heappop(heap), heapq.heapreplace(heap, (0, "z")), list(heapq.merge([1, 4], [2, 3])))
grades = [60, 70, 80]; print([("FDCB"[bisect.bisect(grades, s)]) for s in (55, 60, 79, 99)], bisect.bisect_left(grades, 70))
first = date(2024, 1, 31); print([(first.replace(day=1) + timedelta(32 * i)).replace(day=1).isoformat() for i in range(3)])
date(2024, 2, 30)
