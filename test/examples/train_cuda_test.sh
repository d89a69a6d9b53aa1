#!/usr/bin/env bash
# `train_cuda` on the tests' driver: ranks that share a GPU, ranks with GPUs of their own, and what
# it says where there is none. The CPU's losses and weights are what the GPU's must be, to the bit.
set -euo pipefail
unset CUDA_VISIBLE_DEVICES

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
fake=$TUTTI_BUILD/fake_cuda
small=(--steps 40 --rows 48)

fail() { printf 'train_cuda: %s; it printed:\n' "$1" >&2; cat "$here/out" "$here/err" >&2; exit 1; }

train() {  # RANKS VARIABLE... -- ARGUMENT...: leaves out, err and code
  local ranks=$1 variables=()
  shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  code=0
  env "${variables[@]}" timeout 100 "$TUTTI_BUILD/tutti" run \
    -n "$ranks" "$TUTTI_BUILD/examples/train_cuda" "$@" >"$here/out" 2>"$here/err" || code=$?
}

on_gpus() {  # RANKS GPUS [VARIABLE...]: as on the CPU, which $here/cpu has
  local ranks=$1 gpus=$2
  shift 2
  train "$ranks" LD_LIBRARY_PATH="$fake" FAKE_CUDA_DEVICES="$gpus" "$@" -- "${small[@]}"
  [ "$code" = 0 ] || fail "$ranks ranks on $gpus GPUs ($*): exit status $code"
  grep -q "^train_cuda: $ranks ranks, rank 0 on Fake GPU A$" "$here/err" ||
    fail "$ranks ranks on $gpus GPUs ($*): not on the GPU"
  cmp -s "$here/out" "$here/cpu" ||
    { cat "$here/cpu"; fail "$ranks ranks on $gpus GPUs ($*): not what the CPU gave (above)"; }
}

for ranks in 1 2 3; do
  train "$ranks" TUTTI_VERIFY=1 -- --cpu "${small[@]}"
  [ "$code" = 0 ] || fail "$ranks ranks on the CPU: exit status $code"
  [ "$(grep -c '^step  ' "$here/out")" = 11 ] || fail "not eleven losses"
  grep -q '^weights [0-9a-f]\{16\} on all ranks$' "$here/out" || fail "no weights"
  mv "$here/out" "$here/cpu"
  on_gpus "$ranks" 1
  [ "$ranks" = 1 ] || on_gpus "$ranks" 2 FAKE_CUDA_DELAY_US=200
done
# what is small goes through the host, whatever the road
large="all_reduce:-inf=pipelined;broadcast:-inf=pipelined"
for road in pinned leader; do on_gpus 3 1 TUTTI_ALGORITHM="$large;device:-inf=$road"; done
on_gpus 3 2 TUTTI_ALGORITHM="$large;device:-inf=peers"

# Other ranks learn from other examples.
cp "$here/cpu" "$here/three"
train 2 -- --cpu "${small[@]}"
! cmp -s "$here/out" "$here/three" || fail "two ranks gave what three gave"

# No driver, no device: one line, and the status of a skipped test.
for none in "LD_LIBRARY_PATH=$fake FAKE_CUDA_DEVICES=0" "LD_LIBRARY_PATH=$fake FAKE_CUDA_STUB=1"; do
  # shellcheck disable=SC2086 # words
  train 2 $none -- "${small[@]}"
  [ "$code" = 77 ] || fail "without a GPU: exit status $code"
  [ "$(grep -c '^train_cuda: skipped: no GPU' "$here/err")" = 1 ] ||
    fail "without a GPU: not one line that says so"
done

# A GPU that fails on one rank ends all others; nobody hangs, and the reason is there.
train 2 LD_LIBRARY_PATH="$fake" FAKE_CUDA_FAIL=cuLaunchKernel:7:719 -- "${small[@]}"
[ "$code" = 1 ] || fail "with a GPU that fails: exit status $code"
grep -q '^train_cuda: rank [01]: .*719' "$here/err" || fail "with a GPU that fails: no word of it"

train 2 -- --steps 0
[ "$code" = 2 ] || fail "--steps 0: exit status $code"
[ "$(grep -c '^usage' "$here/err")" = 1 ] || fail "--steps 0: not one line of usage"
