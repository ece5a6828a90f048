def _tg_make_match(isinstance=isinstance, list=list, tuple=tuple, dict=dict, len=len, getattr=getattr, hasattr=hasattr, type=type, str=str, bytes=bytes, int=int, float=float, bool=bool):
    def fits(subject, pattern, found):
        kind = pattern[0]
        if kind == "value":
            return subject == pattern[1]
        if kind == "is":
            return subject is pattern[1]
        if kind == "as":
            if pattern[1] is not None and not fits(subject, pattern[1], found):
                return False
            if pattern[2] is not None:
                found[pattern[2]] = subject
            return True
        if kind == "or":
            for other in pattern[1]:
                if fits(subject, other, found):
                    return True
            return False
        if kind == "sequence":
            return sequence(subject, pattern[1], found)
        if kind == "mapping":
            if not isinstance(subject, dict):
                return False
            for key, inner in pattern[1]:
                if key not in subject or not fits(subject[key], inner, found):
                    return False
            if pattern[2] is not None:
                taken = [key for key, _ in pattern[1]]
                found[pattern[2]] = {key: subject[key] for key in subject if key not in taken}
            return True
        return instance(subject, pattern, found)

    def sequence(subject, patterns, found):
        if not isinstance(subject, (list, tuple)) and type(subject).__name__ not in ("deque", "range"):
            return False
        stars = [index for index, inner in enumerate(patterns) if inner[0] == "star"]
        if not stars:
            if len(subject) != len(patterns):
                return False
            for index in range(len(patterns)):
                if not fits(subject[index], patterns[index], found):
                    return False
            return True
        star = stars[0]
        behind = len(patterns) - star - 1
        if len(subject) < star + behind:
            return False
        for index in range(star):
            if not fits(subject[index], patterns[index], found):
                return False
        for index in range(behind):
            if not fits(subject[len(subject) - behind + index], patterns[star + 1 + index], found):
                return False
        if patterns[star][1] is not None:
            found[patterns[star][1]] = list(subject[star:len(subject) - behind])
        return True

    def instance(subject, pattern, found):
        if not isinstance(subject, pattern[1]):
            return False
        names = []
        if pattern[2]:
            if pattern[1] in (bool, bytes, dict, float, int, list, set, str, tuple):
                if not fits(subject, pattern[2][0], found):
                    return False
            else:
                if hasattr(pattern[1], "__match_args__"):
                    names = list(pattern[1].__match_args__)
                elif hasattr(pattern[1], "__dataclass_fields__"):
                    names = [name for name in pattern[1].__dataclass_fields__]
                if len(names) < len(pattern[2]):
                    raise TypeError("the class takes no positional sub-patterns")
                for index in range(len(pattern[2])):
                    if not fits(getattr(subject, names[index]), pattern[2][index], found):
                        return False
        for name, inner in pattern[3]:
            if not hasattr(subject, name) or not fits(getattr(subject, name), inner, found):
                return False
        return True

    def match(subject, pattern):
        found = {}
        return found if fits(subject, pattern, found) else None

    return match


_tg_match = _tg_make_match()
