def _tg_make_csv(iter=iter, list=list, str=str, len=len, isinstance=isinstance, hasattr=hasattr, zip=zip, dict=dict):
    def rows_of(source, delimiter, quotechar):
        text = source.read() if hasattr(source, "read") else "".join([line if line.endswith("\n") else line + "\n" for line in source])
        rows, row, field = [], [], []
        quoted, begun = False, False
        at = 0
        while at < len(text):
            character = text[at]
            if quoted:
                if character == quotechar:
                    if text[at + 1:at + 2] == quotechar:
                        field.append(quotechar)
                        at += 1
                    else:
                        quoted = False
                else:
                    field.append(character)
            elif character == quotechar and not field:
                quoted = begun = True
            elif character == delimiter:
                row.append("".join(field))
                field = []
                begun = True
            elif character == "\n":
                if begun or field or row:
                    row.append("".join(field))
                rows.append(row)
                row, field, begun = [], [], False
            elif character != "\r":
                field.append(character)
            at += 1
        if begun or field or row:
            row.append("".join(field))
            rows.append(row)
        return rows

    def reader(source, dialect="excel", delimiter=",", quotechar='"', **options):
        return iter(rows_of(source, delimiter, quotechar))

    class DictReader:
        def __init__(self, source, fieldnames=None, restkey=None, restval=None, dialect="excel", delimiter=",", quotechar='"', **options):
            rows = [row for row in rows_of(source, delimiter, quotechar) if row]
            if fieldnames is None:
                fieldnames = rows[0] if rows else []
                rows = rows[1:]
            self.fieldnames = fieldnames
            made = []
            for row in rows:
                record = dict(zip(fieldnames, row))
                for name in fieldnames[len(row):]:
                    record[name] = restval
                if len(row) > len(fieldnames):
                    record[restkey] = row[len(fieldnames):]
                made.append(record)
            self._rows = iter(made)

        def __iter__(self):
            return self._rows

    class Writer:
        def __init__(self, target, delimiter, quotechar, quoting, lineterminator):
            self._target = target
            self._delimiter = delimiter
            self._quote = quotechar
            self._all = quoting == 1
            self._end = lineterminator

        def _field(self, value):
            text = "" if value is None else str(value)
            for character in (self._delimiter, self._quote, "\n", "\r"):
                if character in text or self._all:
                    return self._quote + text.replace(self._quote, self._quote * 2) + self._quote
            return text

        def writerow(self, row):
            self._target.write(self._delimiter.join([self._field(value) for value in row]) + self._end)

        def writerows(self, rows):
            for row in rows:
                self.writerow(row)

    def writer(target, dialect="excel", delimiter=",", quotechar='"', quoting=0, lineterminator="\r\n", **options):
        return Writer(target, delimiter, quotechar, quoting, lineterminator)

    class DictWriter:
        def __init__(self, target, fieldnames, restval="", extrasaction="raise", dialect="excel", **options):
            self.fieldnames = fieldnames
            self._missing = restval
            self._strict = extrasaction == "raise"
            self._writer = writer(target, **options)

        def writeheader(self):
            self._writer.writerow(self.fieldnames)

        def writerow(self, record):
            if self._strict:
                extra = [key for key in record if key not in self.fieldnames]
                if extra:
                    raise ValueError(f"dict contains fields not in fieldnames: {extra}")
            self._writer.writerow([record.get(name, self._missing) for name in self.fieldnames])

        def writerows(self, records):
            for record in records:
                self.writerow(record)

    return _tg_module("csv", {"reader": reader, "writer": writer, "DictReader": DictReader, "DictWriter": DictWriter, "QUOTE_MINIMAL": 0, "QUOTE_ALL": 1, "QUOTE_NONNUMERIC": 2, "QUOTE_NONE": 3})


_tg_csv = _tg_make_csv()
