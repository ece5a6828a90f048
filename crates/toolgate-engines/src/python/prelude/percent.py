def _tg_mod(left, right, isinstance=isinstance, str=str, tuple=tuple, dict=dict, int=int, float=float, len=len, repr=repr, chr=chr):
    if not isinstance(left, str):
        return left % right
    values = right if isinstance(right, tuple) else (right,)
    used = 0
    first, *rest = left.split("%")
    parts = [first]
    escaped = False
    for text in rest:
        if escaped or not text:
            # `%%` has nothing between its signs.
            parts.append(text if escaped else "%")
            escaped = not escaped
            continue
        at = 0
        named = None
        if text.startswith("("):
            named, _, text = text[1:].partition(")")
        while text[at:at + 1] and text[at] in "#0- +":
            at += 1
        flags = text[:at]
        begin = at
        if text[at:at + 1] == "*":
            width = str(values[used])
            used += 1
            at += 1
        else:
            while text[at:at + 1] and text[at] in "0123456789":
                at += 1
            width = text[begin:at]
        precision = ""
        if text[at:at + 1] == ".":
            begin = at
            at += 1
            while text[at:at + 1] and text[at] in "0123456789":
                at += 1
            precision = text[begin:at]
            if precision == ".":
                precision = ".0"
        while text[at:at + 1] and text[at] in "hlL":
            at += 1
        kind, after = text[at:at + 1], text[at + 1:]
        if not kind:
            raise ValueError("incomplete format")
        if named is not None:
            value = right[named]
        else:
            if used >= len(values):
                raise TypeError("not enough arguments for format string")
            value = values[used]
            used += 1
        if kind == "a" or (precision and kind in "diuxXo"):
            _tg_refuse("the format %a, and digits after the dot of a whole number: use an f-string")
        align = "<" if "-" in flags else ">"
        sign = "+" if "+" in flags else (" " if " " in flags else "")
        zero = "0" if "0" in flags and "-" not in flags else ""
        other = "#" if "#" in flags else ""
        if kind in "sra":
            shown = str(value) if kind == "s" else repr(value)
            specification = align + width + precision
        elif kind in "diu":
            if not isinstance(value, (int, float)):
                raise TypeError(f"%{kind} format: a real number is required, not {type(value).__name__}")
            shown = int(value)
            specification = ("" if zero else align) + sign + zero + width + "d"
        elif kind in "eEfFgG":
            shown = float(value)
            specification = ("" if zero else align) + sign + zero + width + precision + kind
        elif kind in "xXo":
            shown = int(value)
            specification = ("" if zero else align) + sign + other + zero + width + kind
        elif kind == "c":
            shown = value if isinstance(value, str) else chr(value)
            specification = align + width
        else:
            raise ValueError(f"unsupported format character '{kind}'")
        parts.append(f"{shown:{specification}}")
        parts.append(after)
    if escaped:
        raise ValueError("incomplete format")
    if used < len(values) and not isinstance(right, dict):
        raise TypeError("not all arguments converted during string formatting")
    return "".join(parts)
