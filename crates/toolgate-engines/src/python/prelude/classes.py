_tg_native_isinstance = isinstance


def _tg_make_classes(native_isinstance, getattr=getattr, setattr=setattr, hasattr=hasattr, type=type, tuple=tuple, str=str, len=len, list=list, iter=iter):
    raised = []

    def kind_name(kind):
        return kind.__name__ if hasattr(kind, "_tg_names") else str(kind)

    def is_of(value, kinds):
        if native_isinstance(kinds, tuple):
            for kind in kinds:
                if is_of(value, kind):
                    return True
            return False
        own = type(value)
        if hasattr(own, "_tg_names"):
            return kind_name(kinds) in own._tg_names or str(kinds) == "<class 'object'>"
        return False if hasattr(kinds, "_tg_names") else native_isinstance(value, kinds)

    def is_under(kind, kinds):
        if native_isinstance(kinds, tuple):
            for other in kinds:
                if is_under(kind, other):
                    return True
            return False
        if hasattr(kind, "_tg_names"):
            return kind_name(kinds) in kind._tg_names or str(kinds) == "<class 'object'>"
        return kind == kinds or str(kinds) == "<class 'object'>"

    def static_method(kind, function):
        def call(*arguments, **named):
            if arguments and is_of(arguments[0], kind):
                arguments = arguments[1:]
            return function(*arguments, **named)

        return call

    def class_method(kind, function):
        def call(*arguments, **named):
            if arguments and is_of(arguments[0], kind):
                arguments = arguments[1:]
            return function(kind, *arguments, **named)

        return call

    def exception_init(self, *arguments):
        self.args = arguments

    def exception_text(self):
        arguments = self.args if hasattr(self, "args") else ()
        return str(arguments[0]) if len(arguments) == 1 else (str(arguments) if arguments else "")

    def exception_repr(self):
        arguments = self.args if hasattr(self, "args") else ()
        return type(self).__name__ + "(" + ", ".join([repr(argument) for argument in arguments]) + ")"

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

    def finish(kind, name, bases, members, statics, classes, properties, enumeration):
        names = [name]
        inherited = []
        functions = {}
        carrier = None
        all_properties = list(properties)
        for member in statics + classes:
            functions[member] = getattr(kind, member)
        class_members = {member: functions[member] for member in classes}
        static_members = {member: functions[member] for member in statics}
        for base in bases:
            if hasattr(base, "_tg_names"):
                for other in base._tg_names:
                    if other not in names:
                        names.append(other)
                for member in base._tg_members:
                    if member in members or member in inherited:
                        continue
                    inherited.append(member)
                    if member in base._tg_classes:
                        class_members[member] = base._tg_classes[member]
                    elif member in base._tg_statics:
                        static_members[member] = base._tg_statics[member]
                    else:
                        setattr(kind, member, getattr(base, member))
                for member in base._tg_properties:
                    all_properties.append(member)
                if base._tg_carrier is not None:
                    carrier = base._tg_carrier
            else:
                names.append(str(base))
                carrier = base
        if carrier is not None:
            for other in (str(Exception), str(BaseException)):
                names.append(other)
            probe = carrier("")
            for other in (ValueError, LookupError, ArithmeticError, RuntimeError, OSError, KeyError, IndexError, TypeError):
                if native_isinstance(probe, other):
                    names.append(str(other))
            for member, function in (("__init__", exception_init), ("__str__", exception_text), ("__repr__", exception_repr)):
                if member not in members and member not in inherited:
                    setattr(kind, member, function)
        kind._tg_names = names
        kind._tg_members = members + inherited
        kind._tg_properties = all_properties
        kind._tg_carrier = carrier
        kind._tg_classes = class_members
        kind._tg_statics = static_members
        for member in class_members:
            setattr(kind, member, class_method(kind, class_members[member]))
        for member in static_members:
            setattr(kind, member, static_method(kind, static_members[member]))
        if enumeration:
            count = 0
            made = []
            for member in members:
                value = getattr(kind, member)
                if type(value).__name__ in ("function", "method") or member.startswith("_"):
                    continue
                count += 1
                if hasattr(value, "_automatic"):
                    value = member.lower() if enumeration == "StrEnum" else count
                elif native_isinstance(value, int):
                    count = value
                item = kind()
                item.name = member
                item.value = value
                item._tg_enum = True
                setattr(kind, member, item)
                made.append(item)
            kind.__members__ = {item.name: item for item in made}
            if enumeration != "Enum":
                kind.__eq__ = mixed_equal
                kind.__hash__ = mixed_hash
                names.append("<class 'int'>" if enumeration in ("IntEnum", "int") else "<class 'str'>")
            if "__str__" not in members:
                kind.__str__ = mixed_text if enumeration in ("IntEnum", "StrEnum") else enumeration_text
            if "__repr__" not in members:
                kind.__repr__ = enumeration_repr

    def get(value, name):
        found = getattr(value, name)
        own = type(value)
        if hasattr(own, "_tg_properties") and name in own._tg_properties:
            return found()
        return found

    def wrap(error):
        if hasattr(error, "_tg_names") and type(error).__name__ == "type":
            error = error()
        own = type(error)
        if not hasattr(own, "_tg_names") or own._tg_carrier is None:
            return error
        raised.append(error)
        text = str(error)
        return own._tg_carrier(f"\x00{len(raised) - 1}\x00{own.__name__}\x00{text}")

    def unwrap(error):
        text = str(error.args[0]) if error.args else ""
        if text.startswith("\x00"):
            return raised[int(text.split("\x00")[1])]
        return error

    def caught(error, kinds):
        return is_of(unwrap(error), kinds)

    def nothing(*arguments, **named):
        return None

    return is_of, is_under, finish, get, wrap, unwrap, caught, exception_init, exception_text, nothing


isinstance, issubclass, _tg_class, _tg_get, _tg_raise, _tg_caught, _tg_is, _tg_exception_init, _tg_exception_text, _tg_nothing = _tg_make_classes(_tg_native_isinstance)


def _tg_member(kind, value):
    for member in kind.__members__.values():
        if member.value == value or member is value:
            return member
    raise ValueError(f"{value!r} is not a valid {kind.__name__}")


def _tg_value(value, hasattr=hasattr):
    return value.value if hasattr(value, "_tg_enum") else value


def _tg_kept(error):
    return _tg_caught(error)
