# ctest: timeout=180
# gpu_facts runs to its end on the tests' driver, and each of its groups says something.
set -u
export LD_LIBRARY_PATH="$TUTTI_BUILD/fake_cuda" FAKE_CUDA_MISUSE=report FAKE_CUDA_END=lax
out=$("$TUTTI_BUILD/test/gpu_facts") || { echo "status $?"; echo "$out"; exit 1; }
for words in 'RANGE_START base+0 RANGE_SIZE 0x40000000' 'an import: ' 'closed once: 0' \
  'read of what its owner has freed' 'all done: 0' 'an imported mapping: ' \
  'cuIpcGetMemHandle: 201' 'past the mapped part: '; do
  grep -qF -e "$words" <<<"$out" || { echo "no line has: $words"; echo "$out"; exit 1; }
done
! grep -F ': slow' <<<"$out" || { echo "$out"; exit 1; }
