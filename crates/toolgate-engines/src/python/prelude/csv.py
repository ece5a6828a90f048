def _tg_make_csv(iter=iter, list=list, str=str, len=len, isinstance=isinstance, hasattr=hasattr, zip=zip, dict=dict, int=int, float=float, next=next):
    known = {"delimiter": ",", "quotechar": '"', "quoting": 0, "lineterminator": "\r\n", "skipinitialspace": False, "doublequote": True, "escapechar": None, "strict": False}
    dialects = {"excel": {}, "excel-tab": {"delimiter": "\t"}, "unix": {"quoting": 1, "lineterminator": "\n"}}

    def settings(dialect, options, allowed):
        made = {**known, **dialects.get(dialect, {"dialect": dialect}), **options}
        for name in made:
            if name not in known or (name not in allowed and made[name] != known[name]):
                _tg_refuse(f"csv with {name}: only {', '.join(allowed)} can be given")
        return made

    def rows_of(source, dialect, options):
        made = settings(dialect, options, ["delimiter", "quotechar", "skipinitialspace", "lineterminator", "quoting"])
        delimiter, skips = made["delimiter"], made["skipinitialspace"]
        if made["quoting"] == 2:
            _tg_refuse("csv that reads numbers (QUOTE_NONNUMERIC): convert the texts with float()")
        quotechar = "" if made["quoting"] == 3 else made["quotechar"]
        rows, row, field, state = [], [], [], "start"
        for line in (source.readlines() if hasattr(source, "readlines") else source):
            if state == "start" and not skips and (not quotechar or quotechar not in line):
                line = line.rstrip("\r\n")
                rows.append(line.split(delimiter) if line else [])
                continue
            for character in line:
                if state == "quoted":
                    if character == quotechar:
                        state = "closing"
                    else:
                        field.append(character)
                elif state == "closing" and character == quotechar:
                    field.append(character)
                    state = "quoted"
                elif character == delimiter:
                    row.append("".join(field))
                    field, state = [], "start"
                elif state == "start" and quotechar and character == quotechar:
                    state = "quoted"
                elif character not in "\r\n" and not (state == "start" and skips and character == " "):
                    field.append(character)
                    state = "plain"
            if state != "quoted":
                rows.append([*row, "".join(field)] if row or field or state != "start" else [])
                row, field, state = [], [], "start"
        if state == "quoted":
            rows.append([*row, "".join(field)])
        return rows

    def reader(source, dialect="excel", **options):
        return iter(rows_of(source, dialect, options))

    class DictReader:
        def __init__(self, source, fieldnames=None, restkey=None, restval=None, dialect="excel", **options):
            rows = iter([row for row in rows_of(source, dialect, options) if row])
            self.fieldnames = next(rows, []) if fieldnames is None else list(fieldnames)
            made = []
            width = len(self.fieldnames)
            for row in rows:
                record = dict(zip(self.fieldnames, row))
                for name in self.fieldnames[len(row):]:
                    record[name] = restval
                if len(row) > width:
                    record[restkey] = row[width:]
                made.append(record)
            self._rows = iter(made)

        def __iter__(self):
            return self._rows

        def __next__(self):
            return next(self._rows)

    class Writer:
        def __init__(self, target, made):
            self._target = target
            self._delimiter = made["delimiter"]
            self._quote = made["quotechar"]
            self._quoting = made["quoting"]
            self._end = made["lineterminator"]
            if self._quoting == 3:
                _tg_refuse("csv without quotes (QUOTE_NONE): join the texts with the delimiter")

        def _field(self, value):
            text = "" if value is None else str(value)
            quoted = self._quoting == 1 or (self._quoting == 2 and not isinstance(value, (int, float)))
            for character in (self._delimiter, self._quote, "\n", "\r"):
                if quoted or character in text:
                    return self._quote + text.replace(self._quote, self._quote * 2) + self._quote
            return text

        def writerow(self, row):
            fields = [self._field(value) for value in row]
            self._target.write((self._quote * 2 if fields == [""] else self._delimiter.join(fields)) + self._end)

        def writerows(self, rows):
            for row in rows:
                self.writerow(row)

    def writer(target, dialect="excel", **options):
        return Writer(target, settings(dialect, options, ["delimiter", "quotechar", "quoting", "lineterminator"]))

    class DictWriter:
        def __init__(self, target, fieldnames, restval="", extrasaction="raise", dialect="excel", **options):
            self.fieldnames = fieldnames
            self._missing = restval
            self._strict = extrasaction == "raise"
            self._writer = writer(target, dialect, **options)

        def writeheader(self):
            self._writer.writerow(self.fieldnames)

        def writerow(self, record):
            if self._strict:
                extra = [repr(key) for key in record if key not in self.fieldnames]
                if extra:
                    raise ValueError("dict contains fields not in fieldnames: " + ", ".join(extra))
            self._writer.writerow([record.get(name, self._missing) for name in self.fieldnames])

        def writerows(self, records):
            for record in records:
                self.writerow(record)

    def sniffer(*arguments):
        _tg_refuse("csv.Sniffer: name the delimiter, or count which of ',;\\t|' is in the first line")

    return _tg_module("csv", {"Sniffer": sniffer, "reader": reader, "writer": writer, "DictReader": DictReader, "DictWriter": DictWriter, "QUOTE_MINIMAL": 0, "QUOTE_ALL": 1, "QUOTE_NONNUMERIC": 2, "QUOTE_NONE": 3})


_tg_csv = _tg_make_csv()
