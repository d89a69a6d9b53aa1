"""A part of a page that a program writes: what stands between <!-- NAME --> and <!-- /NAME -->."""

import re
import sys


def put(text, name, words):
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not found.search(text):
        raise ValueError(f"has no {begin} … {end}")
    return found.sub(lambda _: f"{begin}\n{words}\n{end}", text)


def put_into_file(path, name, words):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        text = put(text, name, words)
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
