# SPDX-License-Identifier: MIT
"""Names in a wheel the systems on which it runs, which its builder does not know.

usage: wheel.py WHEEL OUT [plain]

"plain" makes the wheel for any Python: without the extension, whose work ctypes then does.

The oldest glibc that works is the newest version of a symbol that a binary of it needs. A binary
that loads anything but the C library and what the wheel holds is refused. The rest stays as it is;
auditwheel would replace the command by a Python script that starts it.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libgcc_s.so.1", "libstdc++.so.6"}


def look(data, name):
    """(newest glibc, what is loaded) of a binary; (None, set()) of what is none."""
    if data[:4] != b"\x7fELF":
        return None, set()
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        said = subprocess.run(["readelf", "-dVW", file.name], capture_output=True, text=True,
                              check=True).stdout
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", said)]
    if not versions:
        sys.exit(f"wheel.py: {name} needs no glibc: built by what?")
    return max(versions), set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))


def main():
    wheel, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    plain = "plain" in sys.argv[3:]
    with zipfile.ZipFile(wheel) as old:
        held = [(info, old.read(info)) for info in old.infolist()
                if not (plain and info.filename.endswith(".abi3.so"))]
    own = {pathlib.PurePath(info.filename).name for info, _ in held}
    newest = (2, 17)
    for info, data in held:
        version, needed = look(data, info.filename)
        lost = needed - SYSTEM - own
        if lost:
            sys.exit(f"wheel.py: {info.filename} loads {', '.join(sorted(lost))}, which the wheel "
                     "does not hold: configure with -DTUTTI_BUNDLE=ON")
        newest = max(newest, version or newest)
    tag = "manylinux_{}_{}".format(*newest)
    name = wheel.name.replace("-linux_", f"-{tag}_")
    if plain:
        name = re.sub("-cp[0-9]+-abi3-", "-py3-none-", name)
    record = []
    with zipfile.ZipFile(out / name, "w", zipfile.ZIP_DEFLATED) as new:
        for info, data in held:
            if info.filename.endswith(".dist-info/RECORD"):
                last = info
                continue
            if info.filename.endswith(".dist-info/WHEEL"):
                data = data.replace(b"-linux_", f"-{tag}_".encode())
                if plain:
                    data = re.sub(b"cp[0-9]+-abi3-", b"py3-none-", data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{info.filename},sha256={digest},{len(data)}")
            new.writestr(info, data)
        record.append(f"{last.filename},,")
        new.writestr(last, "\n".join(record) + "\n")
    print(name)


if __name__ == "__main__":
    main()
