"""Write texts with their tokens and vectors, to hold another implementation against.

    python reference.py TABLE.bin OUT.json
"""

import json
import sys

import numpy as np

from tokens import Tokenizer
from train import HALVING
from write_table import read

TEXTS = """create_issue
getHTTPResponse2
listURLs in a folder
What's the weather like in Paris tomorrow?
Please don't delete my files
convert a PDF document to Markdown
send an e-mail with an attachment
flowchart
kubernetes pod logs
SELECT * FROM customers WHERE id = 42
查询北京的天气
列出目录中的文件
天気予報を取得する
파일을 삭제합니다
créer un dossier
Datei löschen
buscar vuelos baratos
удалить файл
zwei Dateien vergleichen
NCT04280705
mcp__github__search_repositories
a
the of and

🙂 🙂
x9z
ＦＵＬＬ width ｌｅｔｔｅｒｓ
soft\u00adhyphen and zero\u200bwidth
naïve café résumé
İstanbul
e.g. foo.bar-baz_qux
users' IDs
getIDsByName
translate text from English to German
book a table at a restaurant
current price of a stock
resize an image to 200x300 pixels
schedule a meeting with the team next week
open a pull request
restart the database server
how do I get to the airport
find a recipe for dinner without gluten
summarise a long article
play some music
track a parcel
what time is it in Tokyo
calculate the square root
read the sensor in the kitchen
中文 and English mixed テスト
qwrtzpsdfg""".split("\n")


def main():
    vocabulary, table = read(sys.argv[1])
    tokenizer = Tokenizer(vocabulary)
    cases = []
    for text in TEXTS:
        tokens = tokenizer.encode(text)
        vector = np.zeros(table.shape[1])
        for place, token in enumerate(tokens):
            vector += table[token] / (1 + place / HALVING)
        length = np.linalg.norm(vector)
        vector = vector / length if length > 0 else vector
        cases.append({
            "text": text, "tokens": [vocabulary[token] for token in tokens],
            "vector": [round(float(number), 6) for number in vector],
        })
    with open(sys.argv[2], "w", encoding="utf8") as file:
        json.dump(cases, file, ensure_ascii=False, indent=None)
    print(len(cases), "texts")


if __name__ == "__main__":
    main()
