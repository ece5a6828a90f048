def _tg_mod(left, right, isinstance=isinstance, str=str, tuple=tuple, dict=dict, int=int, float=float, len=len, repr=repr, chr=chr):
    if not isinstance(left, str):
        return left % right
    values = right if isinstance(right, tuple) else (right,)
    used = 0
    parts = []
    at = 0
    while True:
        start = left.find("%", at)
        if start < 0:
            parts.append(left[at:])
            break
        parts.append(left[at:start])
        at = start + 1
        named = None
        if left[at:at + 1] == "(":
            close = left.find(")", at)
            named = left[at + 1:close]
            at = close + 1
        begin = at
        while at < len(left) and left[at] in "#0- +":
            at += 1
        flags = left[begin:at]
        begin = at
        if left[at:at + 1] == "*":
            width = str(values[used])
            used += 1
            at += 1
        else:
            while at < len(left) and left[at] in "0123456789":
                at += 1
            width = left[begin:at]
        precision = ""
        if left[at:at + 1] == ".":
            begin = at
            at += 1
            while at < len(left) and left[at] in "0123456789":
                at += 1
            precision = left[begin:at]
            if precision == ".":
                precision = ".0"
        while at < len(left) and left[at] in "hlL":
            at += 1
        if at >= len(left):
            raise ValueError("incomplete format")
        kind = left[at]
        at += 1
        if kind == "%":
            parts.append("%")
            continue
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
            text = str(value) if kind == "s" else repr(value)
            specification = align + width + precision
        elif kind in "diu":
            if not isinstance(value, (int, float)):
                raise TypeError(f"%{kind} format: a real number is required, not {type(value).__name__}")
            text = int(value)
            specification = ("" if zero else align) + sign + zero + width + "d"
        elif kind in "eEfFgG":
            text = float(value)
            specification = ("" if zero else align) + sign + zero + width + precision + kind
        elif kind in "xXo":
            text = int(value)
            specification = ("" if zero else align) + sign + other + zero + width + kind
        elif kind == "c":
            text = value if isinstance(value, str) else chr(value)
            specification = align + width
        else:
            raise ValueError(f"unsupported format character '{kind}'")
        parts.append(f"{text:{specification}}")
    if used < len(values) and not isinstance(right, dict):
        raise TypeError("not all arguments converted during string formatting")
    return "".join(parts)
