"""From text to tokens, as the Rust side does it.

A text is cut into words as for the index of words: identifiers are split, letters are folded to lower case without
accents, the end of a contraction is dropped. Numbers are passed over. A word that the vocabulary has is a token; another
is cut from the left into the longest words of the vocabulary with three letters or more (`flowchart` is flow, chart). A
run of a script without blanks is cut into the longest entries in the same way, of one letter or more. A letter with
which nothing begins is passed over.
"""

MAX_WORD = 64
MAX_RUN_ENTRY = 6
MIN_PIECE = 3
CONTRACTIONS = {"s", "t", "m", "d", "ll", "re", "ve"}
IGNORED = [(0xAD, 0xAD), (0x300, 0x36F), (0x61C, 0x61C), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E),
           (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0000, 0xE0FFF)]
UNSEGMENTED = [(0xE01, 0xE4E), (0xE81, 0xECD), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17D3), (0x3005, 0x3007),
               (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3131, 0x318E),
               (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
               (0xFF66, 0xFF9D), (0x20000, 0x323AF)]
FOLDED = {
    "a": "àáâãäåāăąǎạảấầẩẫậắằẳẵặ", "ae": "æ", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęěẹẻẽếềểễệ", "g": "ĝğġģ", "h": "ĥħ",
    "i": "ìíîïĩīĭįıǐỉị", "ij": "ĳ", "j": "ĵ", "k": "ķ", "l": "ĺļľŀł", "n": "ñńņň", "o": "òóôõöøōŏőơǒọỏốồổỗộớờởỡợ",
    "oe": "œ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß", "t": "ţťŧț", "th": "þ", "u": "ùúûüũūŭůűųưǔụủứừửữự", "w": "ŵ",
    "y": "ýÿŷỳỵỷỹ", "z": "źżž",
}
FOLD = {letter: plain for plain, letters in FOLDED.items() for letter in letters}

WORD, RUN, CONNECTOR, APOSTROPHE, IGNORE, SEPARATOR = range(6)
_classes = {}


def classify(character):
    found = _classes.get(character)
    if found is None:
        found = _classes[character] = _classify(character)
    return found


def _classify(character):
    code = ord(character)
    if character in "'\u2019":
        return APOSTROPHE
    if character in "_-.\u2010\u2011":
        return CONNECTOR
    if code < 128:
        return WORD if character.isalnum() else SEPARATOR
    if any(low <= code <= high for low, high in IGNORED):
        return IGNORE
    if any(low <= code <= high for low, high in UNSEGMENTED):
        return RUN
    return WORD if character.isalnum() else SEPARATOR


def narrow(character):
    code = ord(character)
    wide = 0xFF10 <= code <= 0xFF19 or 0xFF21 <= code <= 0xFF3A or 0xFF41 <= code <= 0xFF5A
    return chr(code - 0xFEE0) if wide else character


def fold(part):
    if part.isascii():
        return part.lower()
    folded = []
    for character in "".join(letter.lower() for letter in part):
        plain = FOLD.get(character)
        if plain is not None:
            folded.append(plain)
        elif classify(character) != IGNORE:
            folded.append(character)
    return "".join(folded)


def split(run):
    """The parts of a run of letters and digits: getHTTPResponse2 is get, HTTP, Response, 2."""
    start = 0
    for place in range(1, len(run)):
        if boundary(run, place):
            yield run[start:place]
            start = place
    yield run[start:]


def boundary(run, place):
    before, here = run[place - 1], run[place]
    if before.isnumeric() != here.isnumeric():
        return True
    if not here.isupper():
        return False
    if before.islower():
        return True
    following = run[place + 1:place + 2]
    plural = following == "s" and not run[place + 2:place + 3].islower()
    return before.isupper() and following.islower() and not plural


def words(text):
    """Yields (word, whether it is a run of a script without blanks)."""
    place, length = 0, len(text)
    while place < length:
        kind = classify(text[place])
        if kind not in (WORD, RUN):
            place += 1
            continue
        run = []
        while place < length and classify(text[place]) in (kind, IGNORE):
            if classify(text[place]) == kind:
                run.append(narrow(text[place]))
            place += 1
        run = "".join(run)
        if kind == RUN:
            yield run, True
            continue
        if len(run) <= MAX_WORD:
            for part in split(run):
                yield fold(part), False
        if place < length and classify(text[place]) == APOSTROPHE:
            end = place + 1
            while end < length and classify(text[end]) in (WORD, IGNORE):
                end += 1
            if text[place + 1:end].lower() in CONTRACTIONS:
                place = end


class Tokenizer:
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.places = {token: place for place, token in enumerate(vocabulary)}
        self.known = {}

    def encode(self, text):
        tokens = []
        for word, is_run in words(text):
            key = (word, is_run)
            if key not in self.known:
                self.known[key] = self._run(word) if is_run else self._word(word)
            tokens.extend(self.known[key])
        return tokens

    def _word(self, word):
        if word.isnumeric():
            return []
        found = self.places.get(word)
        return [found] if found is not None else self._longest(word, MIN_PIECE, len(word))

    def _run(self, run):
        return self._longest(run, 1, MAX_RUN_ENTRY)

    def _longest(self, word, shortest, longest):
        """The longest entry at the beginning, then the longest after it, and so on."""
        entries, start = [], 0
        while start < len(word):
            for end in range(min(len(word), start + longest), start + shortest - 1, -1):
                found = self.places.get(word[start:end])
                if found is not None:
                    entries.append(found)
                    start = end
                    break
            else:
                start += 1
        return entries
