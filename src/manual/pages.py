# SPDX-License-Identifier: MIT
"""Makes the manual's pages of section 3 from the public headers, as mdoc.

usage: pages.py OUT VERSION DATE HEADER...

A block of a header gives a page with the name of its first function or its type; the other
functions of the block get pages that lead there. The head of tutti.h becomes the page tutti(3).
"""

import pathlib
import re
import sys

import header

KEPT = re.compile(r"^(RESULTS|FAILURE|ALL OR NONE|WAITS THAT CAN NEVER END|BUFFERS|DEVICE BUFFERS|"
                  r"THREADS|CAVEATS)\b")
ERROR = re.compile(r"^\s+(-E[A-Z0-9]+(?:, -E[A-Z0-9]+)*|others)(?: …)?(,? and the system's own)?"
                   r"(?:\s{2,}(.*))?$")
MARKED = re.compile(r"^([(\"]*)(tutti_\w+|TUTTI_[A-Z]+|-E[A-Z0-9]+|`\w+`)([).,;:?!\"]*)$")
SPECIAL = re.compile(r"^( *- |    |[A-Z]\w+ {2,}\S)")  # no further line of a paragraph
COMMENT = r"/\* ((?:(?!\*/)[\s\S])*) \*/"
FIELD = re.compile(rf"(?:{COMMENT}\n)?^( +[^/\n]+;)(?: *{COMMENT})?", re.M)  # above it or beside
NAMED = re.compile(r"^([A-Z]\w+) {2,}(\S.*)$")


def escaped(text):
    """Text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "\\&...")
    text = text.replace("∘", "o").replace("×", "x")
    return "\\&" + text if text[:1] in ".'" else text


def argument(text):
    """The same as one argument of a macro, or the rest of its line."""
    return escaped(text).replace('"', "\\(dq")


class Page:
    """One page. Words that other pages are about become references."""

    def __init__(self, title, known, version, date):
        self.title, self.known, self.lines = title, known, []
        month = ("January February March April May June July August September October November "
                 "December").split()
        year, number, day = date.split("-")
        self.put(f".Dd {month[int(number) - 1]} {int(day)}, {year}", f".Dt {title.upper()} 3 LOCAL",
                 f".Os tutti {version}")

    def put(self, *lines):
        self.lines.extend(lines)

    def words(self, text):
        """A paragraph's words: references, errors and names of values are marked."""
        line = []

        def flush():
            text = re.sub(r"(?<=[.?!]) +", "\n", " ".join(line))
            self.put(*(escaped(sentence) for sentence in text.split("\n") if sentence))
            line.clear()

        for word in text.split():
            match = MARKED.match(word)
            if not match or match[1] and match[1] != "(":
                line.append(word)
                continue
            flush()
            before, name, after = match.groups()
            if before and after.startswith(")"):
                after = after[1:]
            elif before:
                before = ""
                self.put("(\\c")
            if name in self.known and self.known[name] != self.title:
                macro, what = "Xr", f"{name} 3"
            elif name in self.known:
                macro, what = "Fn", name
            elif name.startswith("-E"):
                macro, what = "Er", escaped(name)
            elif name.startswith("`"):
                macro, what = "Va", name.strip("`")
            else:
                macro, what = "Dv", name
            tail = "".join(f" {char}" for char in after.replace('"', ""))
            self.put(f".{macro} {what}{tail}" if not before else f".Po\n.{macro} {what}\n.Pc{tail}")
        flush()

    def literal(self, lines):
        """Code, moved to the left edge."""
        while lines and not lines[-1]:
            lines = lines[:-1]
        edge = min(len(line) - len(line.lstrip()) for line in lines if line)
        self.put(".Bd -literal -offset 2n", *(escaped(line[edge:]) for line in lines), ".Ed")

    def text(self, lines):
        """Paragraphs, lists of errors and of points, code."""
        at, first = 0, True
        while at < len(lines):
            if not lines[at]:
                at += 1
                continue
            end = at
            if ERROR.match(lines[at]):
                at = self.errors(lines, at)
            elif NAMED.match(lines[at]):
                at = self.named(lines, at)
            elif re.match(r"^ *- ", lines[at]):
                at = self.points(lines, at)
            elif lines[at].startswith("    "):
                while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
                    end += 1
                self.literal(lines[at:end])
                at = end
            else:
                while end < len(lines) and lines[end] and not SPECIAL.match(lines[end]):
                    end += 1
                if not first:
                    self.put(".Pp")
                self.words(" ".join(lines[at:end]))
                at = end
            first = False

    def errors(self, lines, at):
        self.put(".Bl -tag -width Er")
        while at < len(lines) and (match := ERROR.match(lines[at])):
            column = len(lines[at]) - len(match[3] or "")
            said = [match[3] or ""]
            at += 1
            while at < len(lines) and lines[at] and not ERROR.match(lines[at]) \
                    and len(lines[at]) - len(lines[at].lstrip()) >= min(column, 9):
                said.append(lines[at].strip())
                at += 1
            more = " , No " + match[2].strip(", ") if match[2] else ""
            self.put(f".It Er {escaped(match[1])}{more}" if match[1] != "others" else ".It others")
            self.words(" ".join(said))
        self.put(".El")
        return at

    def named(self, lines, at):
        """Lines "Integers  all. SUM wraps.", whose further lines are indented."""
        self.put(".Bl -tag -width Integers")
        while at < len(lines) and (match := NAMED.match(lines[at])):
            said = [match[2]]
            at += 1
            while at < len(lines) and lines[at].startswith("    "):
                said.append(lines[at].strip())
                at += 1
            self.put(f".It {match[1]}")
            self.words(" ".join(said))
        self.put(".El")
        return at

    def points(self, lines, at):
        self.put(".Bl -bullet -compact")
        while at < len(lines) and (match := re.match(r"^( *)- (.*)", lines[at])):
            said = [match[2]]
            at += 1
            while at < len(lines) and lines[at].startswith(match[1] + "  ") \
                    and not re.match(r"^ *- ", lines[at]):
                said.append(lines[at].strip())
                at += 1
            self.put(".It")
            self.words(" ".join(said))
        self.put(".El")
        return at

    def write(self, out):
        (out / f"{self.title}.3").write_text("\n".join(line for line in self.lines if line) + "\n")


def parts(text):
    """What a block's comment says: (what and how, errors, example)."""
    told, errors, example = [], [], []
    into = told
    for line in text:
        match = re.match(r"^(Errors|Example)\b([^:;]*(?:;[^:]*)?):\s*(.*)$", line)
        if match:
            into = errors if match[1] == "Errors" else example
            if match[1] == "Errors" and match[3].startswith("-E"):
                into.append("     " + match[3])
            else:
                head = (match[2].strip(" ,;") + ": " + match[3]).strip(": ")
                into += [head[0].upper() + head[1:] + ("." if match[3] else ":")] if head else []
        else:
            into.append(line)
    return told, errors, example


def first_sentence(lines):
    paragraph = " ".join(line for line in "\n".join(lines).split("\n\n")[0].split("\n"))
    paragraph = " ".join(paragraph.split()).replace("`", "")
    sentence = re.split(r"(?<=[a-z0-9)\]\"])[.:;] ", paragraph + " ")[0].rstrip(" .:;")
    if sentence[1:2].islower() or sentence[1:2] == " ":
        sentence = sentence[:1].lower() + sentence[1:]
    return sentence if len(sentence) < 160 else sentence[:sentence.rindex(" ", 0, 156)] + " ..."


def synopsis(page, block):
    page.put(".Sh SYNOPSIS", f".In {block.header}")
    for function in block.functions:
        page.put(f".Ft {function.returns}", f".Fo {function.name}")
        for parameter in function.parameters:
            # lines break between arguments only: those of a function's type stand for themselves
            page.put(*(f'.Fa "{argument(part)}"' if part != "void" else ".Fa void"
                       for part in parameter.split(", ")))
        page.put(".Fc")
    if block.type_name:
        page.put(".Bd -literal", *(escaped(line) for line in uncommented(block.declaration)), ".Ed")


def uncommented(lines):
    text = re.sub(r"\n? *(?<!\S)/\*.*?\*/", "", "\n".join(lines), flags=re.S)
    return [part for line in text.split("\n") if line.strip() for part in folded(line)]


def folded(line, width=73):
    """A line of a declaration, so that it stands in 80 columns behind a page's indentation."""
    edge = len(line) - len(line.lstrip())
    while len(line) > width and (at := line.rfind(", ", edge, width)) > 0:
        yield line[:at + 1]
        line = " " * (edge + 4) + line[at + 2:]
    yield line


def fields(page, block):
    """What the comments in a structure say of its fields."""
    text = "\n".join(block.declaration)
    found = [(above or beside, code) for above, code, beside in FIELD.findall(text)
             if above or beside]
    if not found:
        return
    page.put(".Bl -tag -width Ds")
    for comment, code in found:
        names = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", code)
        names = re.sub(r"\[\d+\]|\*", "", names).strip(" ;")
        names = " , ".join(part.split()[-1] for part in names.split(","))
        page.put(f".It Fa {escaped(names)}")
        page.words(" ".join(re.sub(r"^ *\* ?", "", line) for line in comment.split("\n")))
    page.put(".El")


def results(page, block):
    kinds = {function.returns for function in block.functions}
    if kinds == {"int"}:
        page.put(".Sh RETURN VALUES", "0, or a result that is not negative; or one of the errors",
                 "of", ".Xr tutti 3 ,", "which are negative.", ".Va errno", "is left alone.",
                 ".Xr tutti_explain 3", "has the reason in words.")


def errors_of(names, shared):
    """What a section says of errors, for a page of these names: "Of all:", "Of put, get, look:"."""
    if not shared:
        return []
    which = re.fullmatch(r"Of ([a-z, ]+):", shared[0])[1].split(", ")
    if which == ["all"]:
        return ["All functions of this section:"] + shared[1:]
    if not any(word in which for name in names for word in name.split("_")):
        return []
    return [f"Those that {', '.join(which[:-1])} or {which[-1]}:"] + shared[1:]


def page_of(block, section, known, version, date, siblings):
    title = block.functions[0].name if block.functions else block.type_name
    page = Page(title, known, version, date)
    told, errors, example = parts(block.text)
    page.put(".Sh NAME")
    names = [f.name for f in block.functions] or [block.type_name]
    page.put(*(f".Nm {name}" + (" ," if name != names[-1] else "") for name in names))
    page.put(f".Nd {argument(first_sentence(told))}")
    synopsis(page, block)
    page.put(".Sh DESCRIPTION")
    page.text(told)
    fields(page, block)
    shared, shared_errors, _ = parts(section.text) if section else ([], [], [])
    shared_errors = errors_of(names, shared_errors)
    if any(shared):
        page.put(f".Ss {section.title.capitalize()}: all functions")
        page.text(shared)
    results(page, block)
    if example:
        page.put(".Sh EXAMPLES")
        page.literal(example)
    if errors or shared_errors:
        page.put(".Sh ERRORS")
        page.text(errors)
        if shared_errors:
            page.put(".Pp") if errors else None
            page.text(shared_errors)
    others = sorted({name for name in siblings if name != title} | {"tutti"})
    page.put(".Sh SEE ALSO", *(f".Xr {name} 3" + (" ," if name != others[-1] else "")
                               for name in others))
    return page


def overview(head, headers, known, version, date):
    """tutti(3): the head of tutti.h, and a list of all pages."""
    page = Page("tutti", known, version, date)
    page.put(".Sh NAME", ".Nm tutti", ".Nd collectives for the processes of one machine",
             ".Sh SYNOPSIS", ".In tutti.h", ".Pp", "Programs link with", ".Fl ltutti .",
             ".Sh DESCRIPTION")
    part = []
    for line in head.text[2:]:
        if KEPT.match(line):
            page.text(part)
            page.put(f".Ss {line.split(':')[0].capitalize()}")
            part = []
        else:
            part.append(line)
    page.text(part)
    page.put(".Sh PAGES")
    title = None
    for header_ in headers:
        for block in header_.blocks:
            name = block.functions[0].name if block.functions else block.type_name
            section = block.section or ("types" if block.type_name else header_.name)
            if section != title:
                page.put(".El") if title else None
                page.put(f".Ss {section if '.' in section else section.capitalize()}",
                         ".Bl -tag -width tutti_reduce_scatter")
                title = section
            page.put(f".It Xr {name} 3", escaped(first_sentence(parts(block.text)[0])))
    page.put(".El", ".Sh SEE ALSO", ".Xr tutti 1")
    return page


def main():
    out, version, date = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    headers = [header.read(pathlib.Path(path)) for path in sys.argv[4:]]
    out.mkdir(parents=True, exist_ok=True)
    known = {}  # function or type: the page that is about it
    for head in headers:
        for block in head.blocks:
            names = [f.name for f in block.functions] or [block.type_name]
            known.update({name: names[0] for name in names})
    for head in headers:
        sections = {section.title: section for section in head.sections}
        for block in head.blocks:
            siblings = {known[f.name] for other in head.blocks for f in other.functions
                        if other.section == block.section}
            page = page_of(block, sections.get(block.section), known, version, date, siblings)
            page.write(out)
            for function in block.functions[1:]:
                alias = out / f"{function.name}.3"
                alias.unlink(missing_ok=True)
                alias.symlink_to(f"{page.title}.3")
    overview(headers[0], headers, known, version, date).write(out)


if __name__ == "__main__":
    main()
