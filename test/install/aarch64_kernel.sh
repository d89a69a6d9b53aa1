#!/usr/bin/env bash
# Makes a kernel of aarch64 with large pages: Debian packs one with 16 KiB, and none with 64 KiB.
# Its sources are Debian's (linux-source-6.1), its parts those that tutti and its tests ask for.
#
#   bash test/install/aarch64_kernel.sh [64K]          (or 16K, 4K)
#
# prints the image's path, for test/install/aarch64_machine.sh -k. Needs gcc-aarch64-linux-gnu,
# flex, bison, bc and 2 GB in build/aarch64-machine; takes some minutes.
set -eu
pages=${1:-64K}
case $pages in 4K|16K|64K) ;; *) echo "usage: ${0##*/} [64K|16K|4K]" >&2; exit 2 ;; esac
cd "$(dirname "$0")/../.."
folder=$PWD/build/aarch64-machine/linux-$pages
mkdir -p "$folder"
cd "$folder"
if [ ! -d linux-source-6.1 ]; then
  apt-get -qq -o APT::Sandbox::User=root download linux-source-6.1 >&2
  dpkg -x linux-source-6.1_*.deb unpacked
  tar -xf unpacked/usr/src/linux-source-6.1.tar.xz
  rm -rf unpacked linux-source-6.1_*.deb
fi
cat >parts <<'PARTS'
  ARM64_VA_BITS_48 SMP PRINTK TTY UNIX98_PTYS SERIAL_AMBA_PL011 SERIAL_AMBA_PL011_CONSOLE
  BLK_DEV_INITRD BINFMT_ELF BINFMT_SCRIPT COREDUMP MULTIUSER SYSVIPC POSIX_MQUEUE
  CROSS_MEMORY_ATTACH POSIX_TIMERS HIGH_RES_TIMERS NO_HZ_IDLE FUTEX EPOLL SIGNALFD TIMERFD
  EVENTFD SHMEM AIO IO_URING ADVISE_SYSCALLS MEMBARRIER KCMP RSEQ USERFAULTFD MEMFD_CREATE TMPFS
  TMPFS_XATTR PROC_FS PROC_SYSCTL SYSCTL PROC_PAGE_MONITOR PROC_CHILDREN SYSFS DEVTMPFS
  DEVTMPFS_MOUNT CGROUPS MEMCG CPUSETS CGROUP_SCHED FAIR_GROUP_SCHED CFS_BANDWIDTH CGROUP_PIDS
  NAMESPACES USER_NS PID_NS UTS_NS IPC_NS NET_NS NET UNIX INET SECCOMP SECCOMP_FILTER
  BPF_SYSCALL TRANSPARENT_HUGEPAGE TRANSPARENT_HUGEPAGE_MADVISE HUGETLBFS NUMA MIGRATION
  COMPACTION KALLSYMS PCI PCI_HOST_GENERIC FILE_LOCKING INOTIFY_USER FHANDLE CHECKPOINT_RESTORE
  BLOCK HW_RANDOM RANDOM_TRUST_CPU ARM64_PTR_AUTH ARM64_SVE ARM64_LSE_ATOMICS
  ARM64_USE_LSE_ATOMICS
PARTS
{ echo "CONFIG_ARM64_${pages}_PAGES=y"
  echo "CONFIG_NR_CPUS=8"
  for part in $(cat parts); do echo "CONFIG_$part=y"; done; } >wanted
export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
make -s -C linux-source-6.1 allnoconfig KCONFIG_ALLCONFIG=../wanted >&2
while read -r line; do
  grep -qx "$line" linux-source-6.1/.config || echo "the kernel has no $line" >&2
done <wanted
make -s -C linux-source-6.1 -j"$(nproc)" Image >&2
echo "$folder/linux-source-6.1/arch/arm64/boot/Image"
