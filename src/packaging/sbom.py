# SPDX-License-Identifier: MIT
"""Prints what a release is made of, as SPDX 2.3 in JSON (an SBOM).

usage: sbom.py VERSION TIME TREE

Its own sources with their checksums, what the binaries load, what is only needed to build. The same
tree gives the same bytes: the time is that of the commit. A test compares what the binaries load
with what stands here.
"""

import datetime
import hashlib
import json
import pathlib
import sys

# name, licence, relation, what for
PARTS = (
    ("glibc", "LGPL-2.1-or-later", "DYNAMIC_LINK", "libc.so.6, libm.so.6, the loader"),
    ("liburing", "LGPL-2.1-or-later OR MIT", "DYNAMIC_LINK", "liburing.so.2: files"),
    ("gcc", "GPL-3.0-or-later WITH GCC-exception-3.1", "BUILD_TOOL_OF", "or clang"),
    ("cmake", "BSD-3-Clause", "BUILD_TOOL_OF", "with ninja"),
    ("python", "Python-2.0", "OPTIONAL_DEPENDENCY_OF", "the Python package"),
    ("numpy", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "the Python package, where it is there"),
    ("pytorch", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "tutti.torch, built on the user's side"),
    ("cuda-driver", "NOASSERTION", "OPTIONAL_DEPENDENCY_OF", "libcuda.so.1, loaded when asked for"),
    ("cmocka", "Apache-2.0", "TEST_TOOL_OF", "the tests"),
)


def files(tree):
    """Every file of the tree, by name."""
    for path in sorted(p for p in tree.rglob("*") if p.is_file() and not p.is_symlink()):
        data = path.read_bytes()
        name = path.relative_to(tree).as_posix()
        yield {"SPDXID": "SPDXRef-File-" + hashlib.sha1(name.encode()).hexdigest()[:16],
               "fileName": "./" + name, "licenseConcluded": "MIT", "copyrightText": "NOASSERTION",
               "checksums": [
                   {"algorithm": kind, "checksumValue": hashlib.new(kind, data).hexdigest()}
                   for kind in ("SHA1", "SHA256")]}


def package(name, version, licence, comment):
    return {"SPDXID": "SPDXRef-" + name, "name": name, "versionInfo": version,
            "licenseConcluded": licence, "licenseDeclared": licence, "comment": comment,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "copyrightText": "NOASSERTION"}


def main():
    version, time, tree = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    made = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
    listed = list(files(tree))
    digest = hashlib.sha256("".join(f["checksums"][1]["checksumValue"] for f in listed).encode())
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-tutti")]
    relations += [("SPDXRef-tutti", "CONTAINS", f["SPDXID"]) for f in listed]
    for name, _, kind, _ in PARTS:
        ends = ("SPDXRef-tutti", "SPDXRef-" + name)
        relations.append((ends[0], kind, ends[1]) if kind == "DYNAMIC_LINK"
                         else (ends[1], kind, ends[0]))
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tutti-{version}",
        "documentNamespace": f"urn:tutti:{version}:{digest.hexdigest()}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: src/packaging/sbom.py"]},
        "packages": [package("tutti", version, "MIT", "library, command, Python package")]
        + [package(name, "NOASSERTION", licence, what) for name, licence, _, what in PARTS],
        "files": listed,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
