# ctest: timeout=600
# Every kernel is assembled by CUDA's own assembler for each kind of GPU that it knows: no error, no
# word of warning, no register spilled to memory. Where no toolkit is found, the test says so.
set -u
targets='75 80 90 100 120'
ptxas=
for place in "$(command -v ptxas)" "${CUDA_HOME:-}/bin/ptxas" /usr/local/cuda*/bin/ptxas; do
    if [ -x "$place" ]; then
        ptxas=$place
        break
    fi
done
if [ -z "$ptxas" ]; then
    echo "skipped: no ptxas: no CUDA toolkit in PATH, CUDA_HOME or /usr/local/cuda"
    exit 77
fi
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
"$TUTTI_BUILD/test/gpu/ptx_print" --module >"$room/all.ptx" || exit 1
kernels=$(grep -c '^\.visible \.entry' "$room/all.ptx")
known=$("$ptxas" --help)
tried=0 bad=0 registers=0
for target in $targets; do
    case $known in
    *sm_$target*) ;;
    *)  echo "sm_$target: this ptxas does not know it"
        continue ;;
    esac
    tried=$((tried + 1))
    "$ptxas" -v -arch="sm_$target" -o "$room/all.cubin" "$room/all.ptx" >"$room/said" 2>&1
    if [ $? != 0 ]; then
        echo "sm_$target:"; grep -v 'info *:' "$room/said" | head -20
        bad=$((bad + 1))
        continue
    fi
    compiled=$(grep -c 'Compiling entry function' "$room/said")
    most=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$room/said" | sort -n | tail -1)
    spilled=$(grep -c '[1-9][0-9]* bytes spill' "$room/said")
    warned=$(grep -c -i warning "$room/said")
    echo "sm_$target: $compiled kernels, $most registers at most, $spilled with spills"
    [ "$compiled" = "$kernels" ] && [ "$spilled" = 0 ] && [ "$warned" = 0 ] || bad=$((bad + 1))
    [ "${most:-0}" -gt "$registers" ] && registers=$most
done
echo "ptxas: $kernels kernels x $tried targets, $registers registers at most, $bad errors"
[ "$kernels" -gt 0 ] && [ "$tried" -gt 0 ] && [ "$bad" = 0 ]
