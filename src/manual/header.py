# SPDX-License-Identifier: MIT
"""Reads a public header into what a manual has pages for.

A header is sections (/* ---- title ---- */) of blocks: a comment, then what it is about. The
comment says in this order: what it is; how it works; Errors; Example.
"""

import dataclasses
import re

SECTION = re.compile(r"/\* ---- (.*?) ----")


@dataclasses.dataclass
class Function:
    name: str
    returns: str
    parameters: list  # "const void *send"


@dataclasses.dataclass
class Block:
    header: str  # "tutti.h"
    section: str
    text: list  # lines of the comment
    functions: list = dataclasses.field(default_factory=list)
    type_name: str = ""  # of a type: its name, and how it is declared
    declaration: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Section:
    title: str
    text: list


@dataclasses.dataclass
class Header:
    name: str
    text: list  # the comment at its head
    sections: list
    blocks: list


def comment_lines(comment):
    """The text of a comment, without its frame."""
    body = comment.strip()[2:-2]
    first, *rest = body.split("\n")
    return [first.strip()] + [re.sub(r"^ \* ?", "", line).rstrip() for line in rest]


def named(parameter):
    """A parameter that the header leaves without a name gets one."""
    parameter = " ".join(parameter.split())
    for type_, name in (("tutti_comm *", "comm"), ("tutti_comm **", "comm"),
                        ("const tutti_comm *", "comm"),
                        ("const tutti_call *", "call"), ("tutti_type", "type"),
                        ("tutti_op", "op"), ("tutti_op *", "op"), ("size_t", "bytes")):
        if parameter == type_:
            return parameter + ("" if parameter.endswith("*") else " ") + name
    return parameter


def split_parameters(text):
    """At the commas that stand in no parentheses."""
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [named(p) for p in parts + [part]]


def read_functions(code):
    found = []
    for declaration in code.split(";"):
        match = re.match(r"\s*([a-z][\w ]*?[ *]+)(tutti_\w+)\((.*)\)\s*$", declaration, re.S)
        if match:
            returns = " ".join(match[1].split())
            found.append(Function(match[2], returns, split_parameters(match[3])))
    return found


def read(path):
    text = path.read_text()
    guard = text.index("#ifndef")
    header = Header(path.name, comment_lines(text[:guard].strip()), [], [])
    at, section = guard, ""
    while True:
        start = text.find("/*", at)
        if start < 0:
            return header
        end = text.index("*/", start) + 2
        comment = text[start:end]
        code = text[end:text.find("\n\n", end) if text.find("\n\n", end) > 0 else len(text)]
        at = end
        if text[text.rfind("\n", 0, start) + 1:start].strip():
            continue  # a comment beside code
        title = SECTION.match(comment)
        if title:
            section = title[1]
            header.sections.append(Section(section, comment_lines(comment)[1:]))
            continue
        block = Block(path.name, section, comment_lines(comment))
        struct = re.match(r"\n(typedef (?:struct|enum).*?\n\} (tutti_\w+);)", text[end:], re.S)
        if struct and not code.startswith("\n\n"):
            block.type_name, block.declaration = struct[2], struct[1].split("\n")
            at = end + struct.end()
        else:
            block.functions = read_functions(code)
        if block.type_name or block.functions:
            header.blocks.append(block)
