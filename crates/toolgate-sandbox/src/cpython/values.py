# Values of Python as JSON.
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import types
import uuid

from json.encoder import JSONEncoder
from pathlib import PurePath

# The deepest value, and the longest iterator.
DEPTH = 180
ITEMS = 100_000

TOO_DEEP = f"the value is nested more than {DEPTH} levels deep"
NOT_AWAITED = "a coroutine was never awaited: write `await` before the call that makes it"


class NotJson(Exception):
    """A value has no JSON form. `is_coroutine` says that an `await` is missing."""

    def __init__(self, message, is_coroutine=False):
        super().__init__(message)
        self.is_coroutine = is_coroutine


def simpler(value):
    """The value in types that have a JSON form, one step of it. Raises `NotJson`."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset, collections.deque, range)) or isinstance(value, VIEWS):
        return list(value)
    if isinstance(value, decimal.Decimal):
        return number_of(value)
    if isinstance(value, (uuid.UUID, PurePath, fractions.Fraction)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if value is ... or value is NotImplemented:
        return None
    if isinstance(value, (types.CoroutineType, types.AsyncGeneratorType)):
        raise NotJson(NOT_AWAITED, True)
    if isinstance(value, HAVE_NO_JSON) or callable(value):
        raise NotJson(f"Object of type {type(value).__name__} is not JSON serializable")
    # Those of packages, by what they offer.
    kind = type(value)
    if kind.__module__.partition(".")[0] in ("numpy", "pandas"):
        return simpler_array(value)
    for method in ("model_dump", "_asdict"):
        if callable(getattr(kind, method, None)):
            return getattr(value, method)()
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    attributes = getattr(value, "__dict__", None)
    if attributes is not None and kind.__module__ == "__main__":
        return {name: value for name, value in attributes.items() if not name.startswith("__")}
    slots = getattr(kind, "__slots__", None)
    if slots is not None and kind.__module__ == "__main__":
        names = (slots,) if isinstance(slots, str) else slots
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    raise NotJson(f"Object of type {kind.__name__} is not JSON serializable")


VIEWS = (type({}.keys()), type({}.values()), type({}.items()), collections.UserList)
HAVE_NO_JSON = (bytes, bytearray, memoryview, complex, BaseException, type, types.ModuleType)


def number_of(value):
    if not value.is_finite():
        return float(value)
    if value == value.to_integral_value() and value.as_tuple().exponent >= 0:
        return int(value)
    number = float(value)
    # A number that is not exact would be another value.
    return number if decimal.Decimal(repr(number)) == value else str(value)


def simpler_array(value):
    name = type(value).__name__
    if name == "DataFrame":
        return value.to_dict("records")
    if name == "Series":
        return value.to_dict()
    for method in ("tolist", "item", "to_list"):
        if hasattr(value, method):
            return getattr(value, method)()
    return str(value)


strict = JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=lambda value: simpler(value)
)


def to_json(value):
    """The JSON of an argument. Raises `NotJson` if a part of it has none."""
    try:
        if not has_named_tuples:
            try:
                return encoded(strict.encode(value))
            except TypeError as error:
                # Some other keys have a form too.
                if not str(error).startswith("keys must be"):
                    raise
        return encoded(strict.encode(plain(value, False, DEPTH, set())))
    except ValueError as error:
        raise NotJson(str(error).partition(":")[0]) from None
    except RecursionError:
        raise NotJson(TOO_DEEP) from None


def to_shown_json(value):
    """The JSON of the script's own value, in which a text stands for what has no JSON form."""
    if not has_named_tuples:
        try:
            return encoded(strict.encode(value))
        except (NotJson, TypeError, ValueError, RecursionError):
            pass
    return encoded(strict.encode(plain(value, True, DEPTH, set())))


def encoded(text):
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates become characters, and single ones a mark.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def plain(value, is_shown, depth, around):
    """The value in types that the encoder knows."""
    kind = type(value)
    if kind in (str, int, bool, types.NoneType):
        return value
    if isinstance(value, float):
        if is_shown and value - value != 0:
            # JSON has no such number, and a null would hide that it was one.
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        return float(value)
    if isinstance(value, (str, int)) and not isinstance(value, enum.Enum):
        return value
    if not depth:
        raise NotJson(TOO_DEEP)
    if id(value) in around:
        raise NotJson("Circular reference detected")
    around.add(id(value))
    try:
        if isinstance(value, dict):
            return {
                key_of(key, is_shown): plain(item, is_shown, depth - 1, around)
                for key, item in value.items()
            }
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return plain(value._asdict(), is_shown, depth - 1, around)
        if isinstance(value, (list, tuple)):
            return [plain(item, is_shown, depth - 1, around) for item in value]
        if not is_shown:
            return plain(simpler(value), is_shown, depth - 1, around)
        if isinstance(value, (bytes, bytearray)):
            return value.decode("utf-8", "replace")
        if isinstance(value, collections.abc.Iterator) and not hasattr(value, "__dict__"):
            return plain(list(itertools.islice(value, ITEMS)), is_shown, depth - 1, around)
        try:
            inner = simpler(value)
        except NotJson as error:
            if error.is_coroutine:
                raise
            return repr(value)
        return plain(inner, is_shown, depth - 1, around)
    finally:
        around.discard(id(value))


def key_of(key, is_shown):
    if isinstance(key, enum.Enum):
        key = key.value
    if key is None or isinstance(key, (str, int, float)):
        return key
    if isinstance(key, (datetime.date, datetime.time)):
        return key.isoformat()
    if is_shown or isinstance(key, (uuid.UUID, decimal.Decimal)):
        return str(key) if isinstance(key, (uuid.UUID, decimal.Decimal)) else repr(key)
    raise NotJson(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


# Named tuples are objects. The encoder makes lists of them, so values are looked through as soon as a
# script has made a class of them.
has_named_tuples = False
real_namedtuple = collections.namedtuple


def namedtuple(typename, field_names, *, rename=False, defaults=None, module=None):
    global has_named_tuples
    has_named_tuples = True
    if module is None:
        module = sys._getframe(1).f_globals.get("__name__", "__main__")
    return real_namedtuple(typename, field_names, rename=rename, defaults=defaults, module=module)


namedtuple.__doc__ = real_namedtuple.__doc__
collections.namedtuple = namedtuple
