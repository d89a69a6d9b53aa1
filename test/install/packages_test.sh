# ctest: labels=nosan
# Debian's packages, as a newcomer to them: made, judged by lintian, installed into a clean root,
# the first program of README in C and Python, a measurement, the manual; removed without a trace.
# Only in the long tests (TUTTI_PROVE=1): it builds all anew, and fetches a system for each root.
# Ubuntu is tried where its key is (/usr/share/keyrings, or TUTTI_UBUNTU_KEY names it). What is
# there already is taken: packages in the folder TUTTI_PACKAGES, roots in TUTTI_ROOTS/<release>.
set -u
[ "${TUTTI_PROVE:-}" = 1 ] || { echo "a long test: TUTTI_PROVE=1 runs it"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "chroot needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing"; exit 77; }
scratch=$(mktemp -d)
mounted=
finish() {
  [ -z "$mounted" ] || umount "$mounted"
  rm -rf --one-file-system "$scratch"
}
trap finish EXIT
lost() { echo "$*" >&2; exit 1; }
cd "$TUTTI_SOURCE" || exit 1

packages=${TUTTI_PACKAGES:-build/packages}
[ -n "${TUTTI_PACKAGES:-}" ] || ./bootstrap package >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
lintian "$packages"/*.changes >"$scratch/lintian" 2>&1
! grep -E '^[EW]:' "$scratch/lintian" || lost "lintian $(lintian --version) is not content"

block() {  # LANGUAGE: the first block of it in README
  awk -v start="\`\`\`$1" '$0 == start { inside = 1; next } /^```$/ && inside { exit } inside' \
    README.md
}

size=$(dpkg-deb --fsys-tarfile "$packages"/tutti_*.deb | tar -tv ./usr/bin/tutti |
  awk '{ print $3 }')
[ "$size" -le 1500000 ] || lost "the command has $size bytes"

key=${TUTTI_UBUNTU_KEY:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
ubuntu=
if [ -e "$key" ]; then ubuntu=noble; else echo "Ubuntu's key is not here: it is not tried"; fi
make_root() {  # RELEASE FOLDER
  local from=()
  [ ! -d "${TUTTI_ROOTS:-/none}/$1" ] || { cp -a "$TUTTI_ROOTS/$1" "$2"; return; }
  [ "$1" != noble ] || from=(--keyring="$key" --components=main,universe)
  [ "$1" != noble ] || set -- "$1" "$2" http://archive.ubuntu.com/ubuntu gutsy
  debootstrap --variant=minbase "${from[@]}" "$@" >"$scratch/log" 2>&1 ||
    { tail -n 20 "$scratch/log"; lost "no root of $1"; }
}
for release in ${TUTTI_RELEASES:-bookworm trixie $ubuntu}; do
  root=$scratch/$release
  make_root "$release" "$root"
  mount -t proc proc "$root/proc" && mounted=$root/proc
  mkdir "$root/packages" "$root/work"
  cp "$packages"/*.deb "$root/packages"
  rm -f "$root"/packages/*-dbgsym_*
  block c >"$root/work/first.c"
  block python >"$root/work/first.py"
  in_root() {
    chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C \
      DEBIAN_FRONTEND=noninteractive MANPAGER=cat sh -ec "$1" >"$scratch/said" 2>&1 ||
      { tail -n 30 "$scratch/said"; lost "$release: failed: $1"; }
  }
  says() {
    grep -q "$1" "$scratch/said" || lost "$release: not printed: $1: $(cat "$scratch/said")"
  }
  in_root "apt-get update; apt-get install -y --no-install-recommends gcc libc6-dev pkg-config \
    man-db python3-numpy"
  in_root "find / -xdev -path /packages -prune -o -path /work -prune -o -iname '*tutti*' -print"
  [ ! -s "$scratch/said" ] || lost "$release: there before: $(cat "$scratch/said")"
  in_root "apt-get install -y --no-install-recommends /packages/*.deb"
  in_root "cd /work; cc first.c -o first \$(pkg-config --cflags --libs tutti)
    tutti run -n 4 ./first"
  says 'rank 3 of 4: the mean rank is 1.5'
  in_root "cd /work; tutti run -n 4 python3 first.py"
  says 'rank 3 of 4: \[1.5 1.5 1.5 1.5\]'
  in_root "cd /work; tutti perf barrier -n 2 --quick --without all; tutti version"
  in_root "bash -c '. /usr/share/bash-completion/completions/tutti; complete -p tutti'"
  in_root "man tutti_barrier; man tutti; man 3 tutti; man tutti-run; man 7 tutti"
  says 'TUTTI_BARRIER(3)'
  in_root "apt-get purge -y 'tutti*' 'libtutti*' python3-tutti; rm -rf /work"
  in_root "find / -xdev -path /packages -prune -o -path /var/lib/apt -prune -o \
    -path /var/cache -prune -o -iname '*tutti*' -print"
  [ ! -s "$scratch/said" ] || lost "$release: left behind: $(cat "$scratch/said")"
  umount "$mounted" && mounted=
  echo "$release: $(. "$root/etc/os-release"; echo "$PRETTY_NAME"): installed, used, removed"
done
