#!/usr/bin/env bash
# The tests of build/aarch64 on a machine of aarch64 that qemu-system-aarch64 plays, under a kernel
# of Debian's: what qemu-user answers in the kernel's place (robust lists, advice on memory, limits,
# /proc, seccomp) is the kernel's here. After test/install/aarch64.sh, and a build:
#
#   bash test/install/aarch64_machine.sh [-p PACKAGE] [-s SUITE] [-k IMAGE] [-c CPUS] [-t SECONDS] \
#     REGEX [NOT_REGEX]
#
# PACKAGE names another kernel (default linux-image-cloud-arm64), from SUITE of Debian: such as
# `-p linux-image-arm64-16k -s trixie` for pages of 16 KiB; IMAGE is one of your own, as
# test/install/aarch64_kernel.sh makes one for pages of 64 KiB; SECONDS is the most a test may take
# (default: twice its own limit). Needs qemu-system-arm; the rest is fetched into
# build/aarch64-machine. One line a test: its exit status, seconds, last words if lost.
# It keeps x86's order of memory: that of aarch64 is the explorer's matter (weak stores).
set -eu
cd "$(dirname "$0")/../.."
. /etc/os-release
package=linux-image-cloud-arm64 suite=$VERSION_CODENAME image= cpus=2 most=100000
while getopts p:s:k:c:t: option; do
  case $option in
    p) package=$OPTARG ;;
    s) suite=$OPTARG ;;
    k) image=$(realpath "$OPTARG") ;;
    c) cpus=$OPTARG ;;
    t) most=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
regex=${1:-.} not=${2:-^$}
qemu=${TUTTI_TEST_QEMU:-qemu-system-aarch64}
build=$PWD/build/aarch64 machine=$PWD/build/aarch64-machine
root=$machine/root kernel=$machine/$package
mkdir -p "$root" "$kernel" "$machine/debs"

fetch() {  # SUITE FOLDER PACKAGE...: unpacks them there
  local apt=$machine/apt-$1 folder=$2 conf=$PWD/build/aarch64-apt/conf archive
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,debs}
  sed "s/ $VERSION_CODENAME / $1 /" build/aarch64-apt/sources.list >"$apt/sources.list"
  sed "s|$PWD/build/aarch64-apt/|$apt/|; s|$apt/status|$PWD/build/aarch64-apt/status|" \
    "$conf" >"$apt/conf"
  shift 2
  (cd "$apt/debs" && APT_CONFIG=$apt/conf apt-get -qq update && rm -f ./*.deb &&
    APT_CONFIG=$apt/conf apt-get -qq download "$@")
  for archive in "$apt"/debs/*.deb; do dpkg -x "$archive" "$folder"; done
}
[ -e "$root/bin/bash" ] || fetch "$VERSION_CODENAME" "$root" bash busybox-static coreutils grep \
  sed mawk procps util-linux findutils diffutils debianutils libtinfo6 libselinux1 libacl1 \
  libattr1 libgmp10 libpcre2-8-0 libproc2-0 libsystemd0 libuuid1 libblkid1 libmount1 \
  libsmartcols1 libcap-ng0 libcap2 liblzma5 libzstd1 liblz4-1 libgcrypt20 libgpg-error0
if [ -z "$image" ] && ! compgen -G "$kernel/boot/vmlinuz-*" >/dev/null; then
  conf=$machine/apt-$suite/conf
  [ -e "$conf" ] || fetch "$suite" "$machine/none" base-files
  real=$(APT_CONFIG=$conf apt-cache depends "$package" | sed -n 's/.*Depends: \(linux-image\)/\1/p')
  fetch "$suite" "$kernel" "${real:-$package}"
fi
[ -n "$image" ] || image=$(echo "$kernel"/boot/vmlinuz-*)

# what the guest has: the tools, the libraries built against, the tree, programs without their
# debug information, a list of what to run
world=$machine/world
rm -rf "$world"
mkdir -p "$world$build" "$world"/{proc,sys,dev,etc,run,var/tmp}
cp -a "$root/." "$world"
cp -a build/aarch64-root/lib/. "$world/lib"
cp -a build/aarch64-root/usr/lib/aarch64-linux-gnu/*.so.* "$world/usr/lib/aarch64-linux-gnu"
ln -sf mawk "$world/usr/bin/awk"
ln -sf ../../bin/bash "$world/usr/bin/bash"
ln -sf bash "$world/bin/sh"
git ls-files | tar -cf - -T - | tar -xf - -C "$world$PWD"
for folder in test examples fake_cuda fake_cuda_old; do
  (cd "$build" &&
    find $folder -type f \( -perm -1 -o -name '*.so*' -o -name '*.txt' \) ! -name '*.o')
done >"$machine/files"
(cd "$build" && ls tutti libtutti.so* && find . -type l -name '*.so*') >>"$machine/files"
tar -C "$build" -cf - -T "$machine/files" | tar -xf - -C "$world$build"
find "$world$build" -type f -perm -1 -exec aarch64-linux-gnu-strip --strip-debug {} + 2>/dev/null ||
  true
printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' >"$world/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$world/etc/group"
echo '127.0.0.1 localhost' >"$world/etc/hosts"
python3 - "$build" "$regex" "$not" "$most" >"$world/list" <<'PYTHON'
import json, re, shlex, subprocess, sys
build, wanted, unwanted, most = sys.argv[1:]
shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                       capture_output=True, text=True, check=True).stdout
for test in json.loads(shown)["tests"]:
    name = test["name"]
    if "command" not in test or not re.search(wanted, name) or re.search(unwanted, name):
        continue
    properties = {p["name"]: p["value"] for p in test["properties"]}
    environment = [e for e in properties.get("ENVIRONMENT", []) if not e.startswith("CC=")]
    print(name, min(int(properties.get("TIMEOUT", 120)) * 2, int(most)),
          shlex.join(["env", "-C", properties.get("WORKING_DIRECTORY", build), *environment,
                      *test["command"]]), sep="\t")
PYTHON
cat >"$world/init" <<'SH'
#!/bin/bash
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /sys/fs/cgroup /root
busybox mount -t tmpfs -o mode=1777 tmpfs /dev/shm
busybox mount -t devpts pts /dev/pts
busybox mount -t cgroup2 cgroup /sys/fs/cgroup
ln -sfn /proc/self/fd /dev/fd
busybox ifconfig lo up
chmod 1777 /tmp
pages=$(awk '/KernelPageSize/ { print $2; exit }' /proc/self/smaps)
echo "machine: $(uname -srm), pages of $pages KiB, $(nproc) CPUs"
while IFS=$'\t' read -r name limit command; do
  began=$SECONDS
  timeout -k 5 "$limit" bash -c "$command" >/run/said 2>&1 </dev/null
  status=$?
  echo "$name $status $((SECONDS - began)) s"
  case $status in
    0) ;;
    77) tail -n 2 /run/said | sed 's/^/    /' ;;
    *) tail -n "${TAIL:-14}" /run/said | cut -c1-300 | sed 's/^/    /' ;;
  esac
done </list
echo "machine: done"
busybox poweroff -f
SH
chmod +x "$world/init"

# the archive of the first root: format newc, which few machines have a packer for
python3 - "$world" "$machine/archive" <<'PYTHON'
import os, stat, sys
root, out = sys.argv[1:]
with open(out, "wb") as archive:
    number = 0
    def entry(name, mode, data=b"", device=(0, 0)):
        global number
        number += 1
        name = name.encode() + b"\0"
        head = b"070701" + b"".join(b"%08X" % field for field in (
            number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0))
        for part in (head + name, data):
            archive.write(part + b"\0" * (-len(part) % 4))
    for folder, folders, files in os.walk(root):
        for name in sorted(folders) + sorted(files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            data = os.readlink(path).encode() if stat.S_ISLNK(mode) else b""
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    data = file.read()
            entry(os.path.relpath(path, root), mode, data)
    entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    entry("TRAILER!!!", 0)
PYTHON
exec $qemu -machine virt,accel=tcg -cpu max,pauth-impdef=on -smp "$cpus" -m 6G -nodefaults \
  -no-user-config -display none -no-reboot -serial stdio -kernel "$image" \
  -initrd "$machine/archive" -append "console=ttyAMA0 quiet panic=-1" </dev/null
