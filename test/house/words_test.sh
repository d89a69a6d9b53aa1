# Words that have no place: notes to oneself; types named _t; raw atomics and volatile outside of
# base/atomic.h (a signal handler may have its volatile sig_atomic_t).
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  find . -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.py' -o -name '*.sh' -o -name '*.md' \
    -o -name '*.cmake' \
      -o -name '*.json' -o -name '*.in' -o -name CMakeLists.txt -o -name bootstrap \) \
      -not -path './build*' -not -path './.git/*' -not -path './test/house/*' -print0 |
    xargs -0 -r grep -nwE 'TODO|FIXME|XXX' /dev/null |
    sed 's/^\.\///; s/:\([0-9]*\):.*/:\1: a note to oneself (TODO, FIXME, XXX)/'
  mapfile -t files < <(c_files include src test perf | grep -v '^test/house/')
  lines '
    CODE ~ /(typedef.*[^A-Za-z0-9_]|^[ \t]*}[ \t]*)[a-z][A-Za-z0-9_]*_t;[ \t]*$/ {
        print FILENAME ":" FNR ": a type named _t"
    }
    FILENAME !~ /^src\// || FILENAME ~ /^src\/base\/atomic[a-z_]*\.h$/ { next }
    CODE ~ /(^|[^A-Za-z0-9_])(__atomic_|__sync_|_Atomic|memory_order_|stdatomic)/ \
        || CODE ~ /(^|[^A-Za-z0-9_])atomic_(load|store|exchange|compare|fetch|init|flag)/ \
        || CODE ~ /(^|[^A-Za-z0-9_])atomic_(thread|signal)/ {
        print FILENAME ":" FNR ": a raw atomic; base/atomic.h has the named ones"
    }
    {
        sub(/__asm__ +volatile|asm +volatile/, "", CODE); gsub(/volatile +sig_atomic_t/, "", CODE)
        if (CODE ~ /(^|[^A-Za-z0-9_])volatile([^A-Za-z0-9_]|$)/)
            print FILENAME ":" FNR ": volatile; base/atomic.h has what orders"
    }' "${files[@]}"
}

house
