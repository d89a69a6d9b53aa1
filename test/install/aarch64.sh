#!/usr/bin/env bash
# Configures a build for aarch64 in build/aarch64, on Debian, by gcc- and g++-aarch64-linux-gnu:
# fetches the libraries into build/aarch64-root by apt, with lists and a state of their own, so that
# the system's apt stays as it is. Then:
#
#   bash test/install/aarch64.sh && cmake --build build/aarch64
#   QEMU_LD_PREFIX=$PWD/build/aarch64-root ctest --test-dir build/aarch64 -j2
#
# The last needs qemu-user-static, and its entry in /proc/sys/fs/binfmt_misc: ranks are programs.
# What cannot pass under qemu-user stands in test/README.md.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD/build/aarch64-root apt=$PWD/build/aarch64-apt
mkdir -p "$root" "$apt"/{state/lists/partial,cache/archives/partial,debs}
. /etc/os-release
touch "$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
http://deb.debian.org/debian $VERSION_CODENAME main" >"$apt/sources.list"
cat >"$apt/conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
CONF
export APT_CONFIG=$apt/conf
apt-get -qq update
(cd "$apt/debs" && apt-get -qq download libc6 libc6-dev linux-libc-dev libgcc-s1 libcrypt1 \
  liburing2 liburing-dev libcmocka0 libcmocka-dev systemtap-sdt-dev)
for package in "$apt"/debs/*.deb; do dpkg -x "$package" "$root"; done
# links of the packages that begin at the top begin in the root
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfn "$root$(readlink "$link")" "$link"
done

cat >"$apt/toolchain.cmake" <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
CMAKE
export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
cmake -G Ninja -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE="$apt/toolchain.cmake" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTUTTI_PYTHON= -DTUTTI_PERF=OFF -DTUTTI_TEST_LIMITS=10
