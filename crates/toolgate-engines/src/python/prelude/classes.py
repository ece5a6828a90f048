_tg_native_isinstance = isinstance
_tg_native_getattr = getattr


def _tg_make_classes(native_isinstance, native_getattr, setattr=setattr, hasattr=hasattr, type=type, tuple=tuple, str=str, len=len, int=int, repr=repr, hash=hash):
    raised = []

    def is_of(value, kinds):
        if native_isinstance(kinds, tuple):
            for kind in kinds:
                if is_of(value, kind):
                    return True
            return False
        if hasattr(type(value), "_tg_names"):
            return is_under(type(value), kinds)
        return False if hasattr(kinds, "_tg_names") else native_isinstance(value, kinds)

    def is_under(kind, kinds):
        if native_isinstance(kinds, tuple):
            for other in kinds:
                if is_under(kind, other):
                    return True
            return False
        if not hasattr(kind, "_tg_names"):
            return _tg_subtype(kind, kinds)
        if hasattr(kinds, "_tg_names"):
            return kinds.__name__ in kind._tg_names
        return str(kinds) == "<class 'object'>" or (kind._tg_carrier is not None and _tg_subtype(kind._tg_carrier, kinds))

    def bound(kind, function, takes_class):
        # A call by way of an instance or of the class has that as its first argument.
        def call(*arguments, **named):
            owner = kind
            if arguments and hasattr(arguments[0], "_tg_names"):
                first = arguments[0] if is_class(arguments[0]) else type(arguments[0])
                if kind.__name__ in first._tg_names:
                    owner = first
                    arguments = arguments[1:]
            return function(owner, *arguments, **named) if takes_class else function(*arguments, **named)

        return call

    def is_class(value):
        return hasattr(value, "_tg_names") and type(value).__name__ == "type"

    def abstract_init(kind, left, original):
        def init(self, *arguments, **named):
            if type(self) is kind:
                names = ", ".join([f"'{name}'" for name in left])
                raise TypeError(f"Can't instantiate abstract class {kind.__name__} without an implementation for abstract method{'s' if len(left) > 1 else ''} {names}")
            if original is not None:
                original(self, *arguments, **named)

        return init

    def exception_init(self, *arguments):
        self.args = arguments

    def keeping_arguments(original):
        def init(self, *arguments, **named):
            if not hasattr(self, "args"):
                self.args = arguments
            original(self, *arguments, **named)

        return init

    def exception_text(self):
        return str(self.args[0]) if len(self.args) == 1 else (str(self.args) if self.args else "")

    def exception_repr(self):
        return type(self).__name__ + "(" + ", ".join([repr(argument) for argument in self.args]) + ")"

    def enumeration_text(self):
        return type(self).__name__ + "." + self.name

    def mixed_text(self):
        return str(self.value)

    def mixed_equal(self, other):
        return self.value == (other.value if hasattr(other, "_tg_enum") else other)

    def mixed_hash(self):
        return hash(self.value)

    def enumeration_repr(self):
        return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

    def finish(kind, name, base, members, statics, classes, properties, abstract, enumeration):
        own = {member: native_getattr(kind, member) for member in statics + classes}
        kind._tg_names = [name]
        kind._tg_members = list(members)
        kind._tg_properties = list(properties)
        kind._tg_classes = {member: own[member] for member in classes}
        kind._tg_statics = {member: own[member] for member in statics}
        kind._tg_abstract = list(abstract)
        kind._tg_carrier = None
        if hasattr(base, "_tg_names"):
            kind._tg_names += base._tg_names
            kind._tg_carrier = base._tg_carrier
            kind._tg_properties += [member for member in base._tg_properties if member not in members]
            kind._tg_abstract += [member for member in base._tg_abstract if member not in members]
            for member in base._tg_members:
                if member in members:
                    continue
                kind._tg_members.append(member)
                if member in base._tg_classes:
                    kind._tg_classes[member] = base._tg_classes[member]
                elif member in base._tg_statics:
                    kind._tg_statics[member] = base._tg_statics[member]
                elif member != "__init__" or base._tg_init is not None:
                    setattr(kind, member, base._tg_init if member == "__init__" else native_getattr(base, member))
        elif base is not None:
            kind._tg_carrier = base
        if kind._tg_carrier is not None:
            for member, function in (("__init__", exception_init), ("__str__", exception_text), ("__repr__", exception_repr)):
                if member not in kind._tg_members:
                    setattr(kind, member, function)
            if "__init__" in members:
                kind.__init__ = keeping_arguments(native_getattr(kind, "__init__"))
        kind._tg_init = native_getattr(kind, "__init__", None)
        if kind._tg_abstract:
            kind.__init__ = abstract_init(kind, kind._tg_abstract, kind._tg_init)
            if "__init__" not in kind._tg_members:
                kind._tg_members.append("__init__")
        for member in kind._tg_classes:
            setattr(kind, member, bound(kind, kind._tg_classes[member], True))
        for member in kind._tg_statics:
            setattr(kind, member, bound(kind, kind._tg_statics[member], False))
        if enumeration:
            finish_enumeration(kind, members, enumeration)

    def finish_enumeration(kind, members, enumeration):
        count = 0
        made = []
        kind.__members__ = {}
        for member in members:
            value = native_getattr(kind, member)
            if type(value).__name__ in ("function", "method") or member.startswith("_"):
                continue
            count += 1
            if hasattr(value, "_automatic"):
                value = member.lower() if enumeration == "StrEnum" else count
            elif native_isinstance(value, int):
                count = value
            same = [other for other in made if other.value == value]
            if same:
                item = same[0]
            else:
                item = kind()
                item.name = member
                item.value = value
                item._tg_enum = enumeration
                made.append(item)
            setattr(kind, member, item)
            kind.__members__[member] = item
        kind._tg_items = made
        kind._tg_all = made + [item.value for item in made]
        if enumeration != "Enum":
            kind.__eq__ = mixed_equal
            kind.__hash__ = mixed_hash
            kind._tg_carrier = int if enumeration in ("IntEnum", "int") else str
        if "__str__" not in members:
            kind.__str__ = mixed_text if enumeration in ("IntEnum", "StrEnum") else enumeration_text
        if "__repr__" not in members:
            kind.__repr__ = enumeration_repr

    def get(value, name, *default):
        found = native_getattr(value, name, *default)
        own = type(value)
        if hasattr(own, "_tg_properties") and name in own._tg_properties:
            return found()
        return found

    def wrap(error):
        if is_class(error):
            error = error()
        own = type(error)
        if not hasattr(own, "_tg_names") or own._tg_carrier is None:
            return error
        raised.append(error)
        return own._tg_carrier(f"\x00{len(raised) - 1}\x00{own.__name__}\x00{error}")

    def unwrap(error):
        text = str(error.args[0]) if error.args else ""
        if text.startswith("\x00"):
            return raised[int(text.split("\x00")[1])]
        return error

    def looked_at(error):
        # Monty keeps the text of a key, which may be that of a text or of a number.
        if native_isinstance(error, KeyError) and error.args and doubtful(str(error.args[0])):
            _tg_refuse("the key of a KeyError that may be no text: look with `in` or get() before, or catch it without `as`")
        return unwrap(error)

    def doubtful(text):
        return text in ("None", "True", "False") or text[:1] in "(-0123456789" and text[-1:] in ")0123456789"

    def caught(error, kinds):
        return is_of(unwrap(error), kinds)

    def seen(kind, error):
        if error is None:
            return None, None
        error = unwrap(error)
        return _tg_type(error), error

    def failed(failure):
        tool, _, rest = failure.args[0].partition("\x00")
        content, _, message = rest.partition("\x00")
        return wrap(ToolError(tool, message, _tg_blocks(content) if content else None))

    return is_of, is_under, finish, get, wrap, looked_at, caught, exception_init, exception_text, seen, failed


isinstance, issubclass, _tg_class, getattr, _tg_raise, _tg_caught, _tg_is, _tg_exception_init, _tg_exception_text, _tg_seen, _tg_failed = _tg_make_classes(_tg_native_isinstance, _tg_native_getattr)
_tg_get = getattr


class ToolError:
    def __init__(self, tool="", message="", content=None):
        _tg_exception_init(self, f"{tool}: {message}" if message else tool)
        self.tool = tool if message else ""
        self.message = message or tool
        self.content = [{"type": "text", "text": self.message}] if content is None else content


_tg_class(ToolError, "ToolError", RuntimeError, ["__init__"], [], [], [], [], "")


def _tg_blocks(text):
    import json
    return json.loads(text)


def _tg_nothing(*arguments, **named):
    return None


def _tg_member(kind, value):
    for member in kind._tg_items:
        if member.value == value or member is value:
            return member
    raise ValueError(f"{value!r} is not a valid {kind.__name__}")


def _tg_value(value, hasattr=hasattr):
    return value.value if hasattr(value, "_tg_enum") else value


def _tg_kept(error):
    return _tg_caught(error)
