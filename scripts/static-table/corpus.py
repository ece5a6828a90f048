"""Collect neutral texts: what a token table is trained on.

    python corpus.py SOURCES OUT.json [LEAVE_OUT.txt]

Texts that are lines of LEAVE_OUT are not taken: what a ranking is measured with must not be trained on.
SOURCES is the folder that `fetch.sh` filled. The result has three lists:

    texts         English texts, each one the teacher will read
    pairs         [i, j]: two texts that say the same thing, one of them shorter
    translations  [language, text, i]: what texts[i] is in another language
"""

import collections
import glob
import gzip
import html
import json
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

LANGUAGES = ["zh_CN", "ja", "ko", "de", "fr", "es", "it", "pt_BR", "ru", "pl", "nl", "uk", "da", "cs"]
LOCALES = {"zh_CN": ["zh-Hans-CN", "zh-Hans", "zh_CN", "zh"], "pt_BR": ["pt-BR", "pt_BR", "pt"]}
MOST_TRANSLATIONS = {"zh_CN": 60000, "ja": 40000, "ko": 30000}

# How people dress up a request. The teacher hears that these words change little.
FRAMES = """I want to {}|I need to {}|Can you {}?|Could you please {}?|Please {}|Help me {}|How do I {}?|How can I {}?
Is there a way to {}?|I would like to {}|I'm trying to {}|Can you help me {}?|What is the best way to {}?|{} for me
Could you {} for me, please?|I'd like you to {}|Is it possible to {}?|I have to {} today|my boss asked me to {}
Show me how to {}|Which tool can {}?|find something that can {}|Let me {}|Would you be able to {}?
I am looking for a tool to {}|Tell me how I can {}""".replace("\n", "|").split("|")
VERBS = set("""add allow apply approve archive assign attach book build buy calculate cancel change check clear clone close
collect compare compose compute configure connect convert copy count create deactivate decode delete deploy describe detect
disable discover display download edit enable encode estimate evaluate execute export extract fetch filter find format
generate get give import insert install invite issue join launch list load lock log look make manage mark merge modify
monitor move notify obtain open order parse pay perform play post predict print process provide publish query read receive
recommend record refresh register reject remove rename render replace report request reserve reset resize resolve restart
restore retrieve return revoke run save scan schedule search select send set share show sign sort start stop store submit
subscribe suggest summarize sync tag test track transfer translate trigger unlock update upgrade upload validate verify
view watch write""".split())


class Corpus:
    def __init__(self, left_out=frozenset()):
        self.texts, self.place, self.kind = [], {}, []
        self.pairs, self.translations = set(), []
        self.left_out = left_out

    def add(self, text, kind, shortest=8, longest=400):
        text = clean(text)
        if not shortest <= len(text) <= longest or sum(map(str.isalpha, text)) < 0.5 * len(text):
            return None
        if text.lower() in self.left_out:
            return None
        if text not in self.place:
            self.place[text] = len(self.texts)
            self.texts.append(text)
            self.kind.append(kind)
        return self.place[text]

    def pair(self, left, right):
        if left is not None and right is not None and left != right:
            self.pairs.add((left, right))

    def translate(self, language, text, place):
        text = clean(text)
        if place is not None and 1 <= len(text) <= 400 and text != self.texts[place]:
            self.translations.append((language, text, place))


def clean(text):
    text = html.unescape(re.sub(r"<[^>]{1,200}>", " ", text))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", " ", text)
    return re.sub(r"\s+", " ", re.sub(r"[*`#|]{1,6}", " ", text)).strip()


def sentences(text, longest=300):
    """Whole sentences from the beginning, as many as fit."""
    taken = ""
    for sentence in re.split(r"(?<=[.!?])\s+", clean(text)):
        if taken and len(taken) + len(sentence) > longest:
            break
        taken = f"{taken} {sentence}".strip()
    return taken[:longest]


def split_name(name):
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return " ".join(parts).lower()


def read_lz4(path):
    return subprocess.run(["lz4cat", path], capture_output=True, check=True).stdout.decode("utf8", "ignore")


def debian_entries(sources, language):
    """Package descriptions by their checksum: (short, paragraphs)."""
    entries = {}
    escaped = language.replace("_", "%5f")
    for path in sorted(glob.glob(f"{sources}/apt/lists/*_i18n_Translation-{escaped}.lz4")):
        for block in read_lz4(path).split("\n\n"):
            checksum = re.search(r"^Description-md5: (\w+)", block, re.M)
            body = re.search(rf"^Description-{language}: (.*)\n((?: .*\n?)*)", block, re.M)
            if checksum and body:
                entries[checksum[1]] = (body[1], re.split(r"\n \.\n", body[2]))
    return entries


def add_debian(corpus, sources, rng, most):
    english = debian_entries(sources, "en")
    translated = {language: debian_entries(sources, language) for language in LANGUAGES}
    rare = set().union(*(translated[language].keys() for language in ("zh_CN", "ja", "ko", "ru", "es")))
    order = sorted(english)
    rng.shuffle(order)
    order.sort(key=lambda checksum: checksum not in rare)
    seen = set()
    start = len(corpus.texts)
    for checksum in order:
        short, paragraphs = english[checksum]
        if short in seen or re.search(r"debug symbols|development files|shared library|transitional|documentation$", short):
            continue
        seen.add(short)
        if len(corpus.texts) - start > most:
            break
        first = corpus.add(short, "debian")
        places = [corpus.add(p, "debian") if not re.search(r"^\s*[*\-o+] ", p, re.M) else None for p in paragraphs[:3]]
        if places and places[0] is not None:
            corpus.pair(first, places[0])
        elif paragraphs:
            corpus.pair(first, corpus.add(sentences(paragraphs[0]), "debian"))
        for language, entries in translated.items():
            if checksum in entries and first is not None:
                other_short, other = entries[checksum]
                corpus.translate(language, other_short, first)
                if len(other) == len(paragraphs):
                    for place, text in zip(places, other):
                        corpus.translate(language, text, place)


def add_wordnet(corpus, sources):
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(f"{sources}/deb/x/usr/share/wordnet/data.{part}", encoding="latin1"):
            if line.startswith("  ") or " | " not in line:
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split(" ")
            words = [re.sub(r"\(.*\)", "", fields[4 + 2 * i]).replace("_", " ") for i in range(int(fields[3], 16))]
            meaning = gloss.split('; "')[0].strip()
            whole = corpus.add(", ".join(words[:4]), "wordnet", shortest=3)
            corpus.pair(whole, corpus.add(meaning, "wordnet"))
            for example in re.findall(r'"([^"]{15,})"', gloss):
                corpus.add(example, "wordnet")


def add_interfaces(corpus, sources, rng, most):
    """Operations of web interfaces: name, summary, description, a parameter."""
    budget = collections.Counter()
    root = f"{sources}/npm/package/api/"
    paths = sorted(glob.glob(root + "**/*.json", recursive=True))
    rng.shuffle(paths)
    start = len(corpus.texts)
    for path in paths:
        provider = path[len(root):].split("/")[0]
        with open(path, encoding="utf8") as file:
            interface = json.load(file)
        about = interface.get("info", {})
        title = corpus.add(about.get("title", ""), "interface", shortest=4)
        corpus.pair(title, corpus.add(sentences(about.get("description") or ""), "interface"))
        operations = [
            operation
            for methods in interface.get("paths", {}).values()
            if isinstance(methods, dict)
            for verb, operation in methods.items()
            if verb in ("get", "post", "put", "delete", "patch") and isinstance(operation, dict)
        ]
        rng.shuffle(operations)
        for operation in operations[:100]:
            if budget[provider] > 3000 or len(corpus.texts) - start > most:
                break
            name = split_name(re.sub(r"^.*[./]", "", operation.get("operationId") or ""))
            name = corpus.add(name, "interface") if 2 <= len(name.split()) <= 7 else None
            summary = corpus.add(sentences(operation.get("summary") or ""), "interface")
            description = corpus.add(sentences(operation.get("description") or ""), "interface")
            corpus.pair(name, summary)
            corpus.pair(summary, description)
            corpus.pair(name, description)
            budget[provider] += 1
            for parameter in operation.get("parameters", [])[:6]:
                if isinstance(parameter, dict) and rng.random() < 0.15:
                    corpus.add(sentences(str(parameter.get("description") or ""), 160), "interface")


def add_applications(corpus, sources):
    """Summaries and descriptions of desktop programs, in many languages."""
    for path in sorted(glob.glob(f"{sources}/apt/lists/*dep11_Components*.gz")):
        block, key = {}, None
        for line in gzip.open(path, "rt", encoding="utf8", errors="ignore"):
            if line.startswith("---"):
                add_application(corpus, block)
                block, key = {}, None
            elif re.match(r"^(Summary|Description|Name):", line):
                key = line.split(":")[0]
                block[key] = {}
            elif re.match(r"^\S", line):
                key = None
            elif key and (found := re.match(r"^  ([A-Za-z@_-]+): (.*)", line)):
                block[key][found[1]] = found[2]
                last = found[1]
            elif key and re.match(r"^    ", line) and block[key]:
                block[key][last] += " " + line.strip()


def add_application(corpus, block):
    def plain(value):
        return value.strip().strip(">-|'\"").replace("''", "'")

    summary = corpus.add(plain(block.get("Summary", {}).get("C", "")), "application")
    paragraphs = re.findall(r"<p>(.*?)</p>", plain(block.get("Description", {}).get("C", "")))[:4]
    places = [corpus.add(paragraph, "application") for paragraph in paragraphs]
    if places:
        corpus.pair(summary, places[0])
    for language in LANGUAGES:
        for locale in LOCALES.get(language, [language]):
            if locale in block.get("Summary", {}):
                corpus.translate(language, plain(block["Summary"][locale]), summary)
            other = re.findall(r"<p>(.*?)</p>", plain(block.get("Description", {}).get(locale, "")))[:4]
            if len(other) == len(places):
                for place, text in zip(places, other):
                    corpus.translate(language, text, place)


def help_page(path):
    tag = "{http://projectmallard.org/1.0/}"
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError):
        return []
    wanted = (tag + "title", tag + "desc", tag + "p")
    return [(node.tag[len(tag):], " ".join("".join(node.itertext()).split())) for node in root.iter() if node.tag in wanted]


def add_help(corpus, sources):
    for path in sorted(glob.glob(f"{sources}/deb/x/usr/share/help/C/*/*.page")):
        english = help_page(path)
        places = [corpus.add(text, "help") for _, text in english]
        titles = [place for place, (tag, _) in zip(places, english) if tag == "title"]
        described = [place for place, (tag, _) in zip(places, english) if tag == "desc"]
        if titles and described:
            corpus.pair(titles[0], described[0])
        for language in LANGUAGES:
            other = help_page(path.replace("/help/C/", f"/help/{language}/"))
            if len(other) == len(english):
                for place, (_, text) in zip(places, other):
                    corpus.translate(language, text, place)


def add_names(corpus, sources):
    """Emoji keywords, countries, languages and currencies, in many languages."""
    def emoji(locale):
        path = f"{sources}/npm/ann/package/annotations/{locale}/annotations.json"
        if not os.path.exists(path):
            return {}
        return json.load(open(path, encoding="utf8"))["annotations"]["annotations"]

    def localised(locale):
        found = {}
        for part in ("territories", "languages"):
            path = f"{sources}/npm/loc/package/main/{locale}/{part}.json"
            if os.path.exists(path):
                names = json.load(open(path, encoding="utf8"))["main"][locale]["localeDisplayNames"][part]
                found.update({(part, code): name for code, name in names.items()})
        return found

    english, names = emoji("en"), localised("en")
    places = {}
    for sign, words in english.items():
        whole = corpus.add(", ".join(words.get("default", [])[:6]), "names", shortest=3)
        places[sign] = whole
        corpus.pair(corpus.add((words.get("tts") or [""])[0], "names", shortest=3), whole)
    for code, name in names.items():
        places[code] = corpus.add(name, "names", shortest=3)
    for language in LANGUAGES:
        locale = {"zh_CN": "zh", "pt_BR": "pt"}.get(language, language)
        for sign, words in emoji(locale).items():
            if sign in places:
                corpus.translate(language, ", ".join(words.get("default", [])[:6]), places[sign])
        for code, name in localised(locale).items():
            if code in places:
                corpus.translate(language, name, places[code])


def add_requests(corpus, sources, rng, most):
    """Requests as people speak them, and descriptions dressed up as requests."""
    for path in sorted(glob.glob(f"{sources}/src/x/chatterbot_corpus/data/english/*.yml")):
        for line in open(path, encoding="utf8"):
            if found := re.match(r"^\s*-\s+(?:-\s+)?(.*)", line):
                corpus.add(sentences(found[1], 200), "request")
    for path in sorted(glob.glob(f"{sources}/src/x/ovos_*/**/en-us/**/*.intent", recursive=True)):
        for line in open(path, encoding="utf8"):
            line = re.sub(r"\(([^|)]*)[^)]*\)|\[[^\]]*\]", r"\1", line)
            corpus.add(re.sub(r"[{}_]", " ", line), "request")
    plain = []
    for place, (text, kind) in enumerate(zip(corpus.texts, corpus.kind)):
        words = text.split()
        if kind in ("interface", "debian", "help") and 3 <= len(words) <= 18 and words:
            if base := base_verb(words[0]):
                plain.append((place, " ".join([base] + words[1:]).rstrip(".")))
    rng.shuffle(plain)
    for place, text in plain[:most]:
        framed = rng.choice(FRAMES).format(text[0].lower() + text[1:])
        corpus.pair(corpus.add(framed, "request"), place)


def base_verb(word):
    word = word.lower()
    for base in (word, word[:-1], word[:-2], word[:-3] + "y" if word.endswith("ies") else ""):
        if base in VERBS:
            return base
    return None


def main():
    sources, out = sys.argv[1:3]
    rng = random.Random(0)
    left_out = set()
    for path in sys.argv[3:]:
        left_out.update(line.strip().lower() for line in open(path, encoding="utf8"))
    corpus = Corpus(left_out)
    add_names(corpus, sources)
    add_help(corpus, sources)
    add_applications(corpus, sources)
    add_debian(corpus, sources, rng, 90000)
    add_wordnet(corpus, sources)
    add_interfaces(corpus, sources, rng, 90000)
    add_requests(corpus, sources, rng, 40000)
    kept, counts = [], collections.Counter()
    rng.shuffle(corpus.translations)
    for language, text, place in dict.fromkeys(corpus.translations):
        if counts[language] < MOST_TRANSLATIONS.get(language, 20000):
            counts[language] += 1
            kept.append((language, text, place))
    with open(out, "w", encoding="utf8") as file:
        json.dump({"texts": corpus.texts, "pairs": sorted(corpus.pairs), "translations": kept}, file, ensure_ascii=False)
    print(len(corpus.texts), "texts", collections.Counter(corpus.kind))
    print(len(corpus.pairs), "pairs;", len(kept), "translations", counts)
    print("words a text:", sum(len(t.split()) for t in corpus.texts) / len(corpus.texts))


if __name__ == "__main__":
    main()
