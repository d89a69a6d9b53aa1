# Completion offers every verb, every option of each, their values and words, as the command's own
# help has them. bash is asked; fish and zsh where they are installed.
. "$(dirname "$0")/lib.sh"
source "$TUTTI_SOURCE/src/packaging/completion/tutti.bash"

offers() {  # WORD... : EXPECTED...: what bash offers for the last word
  local words=()
  while [ "$1" != : ]; do words+=("$1"); shift; done
  shift
  COMP_WORDS=("$tutti" "${words[@]}") COMP_CWORD=${#words[@]}
  _tutti
  [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)" = "$(printf '%s\n' "$@" | sort -u)" ] ||
    fail "tutti ${words[*]}: offered: ${COMPREPLY[*]}; expected: $*"
}

verbs=$("$tutti" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 7 ] || fail "verbs of help: $verbs"
offers '' : $verbs
offers ru : run
for verb in $verbs; do
  options=$("$tutti" help "$verb" | grep -E '^ +-' | sed 's/   .*//' | grep -oE -- '--[a-z_-]+' ||
    true)
  [ -z "$options" ] || offers "$verb" -- : $options
done
offers run -n 2 --bind '' : core numa none
offers run -n 2 --bind n : numa none
offers perf al : all_reduce all_gather all_to_all
offers help wh : why
cd "$here" && touch program-of-mine && chmod +x program-of-mine
offers run -n 2 --tag ./program-of : ./program-of-mine

for verb in run ps; do
  options=$("$tutti" help $verb | grep -E '^ +-' | sed 's/   .*//' | grep -oE -- '--[a-z_-]+')
  if command -v fish >/dev/null; then
    PATH=$TUTTI_BUILD:$PATH HOME=$here fish -c "
      source $TUTTI_SOURCE/src/packaging/completion/tutti.fish
      complete -C 'tutti $verb --'" | cut -f1 >"$here/fish"
    for option in $options; do
      grep -qxF -- "$option" "$here/fish" || fail "fish: tutti $verb: $option is not offered"
    done
  fi
done
command -v fish >/dev/null || echo "fish is not installed: its completion was not asked"
if command -v zsh >/dev/null; then
  zsh -n "$TUTTI_SOURCE/src/packaging/completion/_tutti" || fail "zsh cannot read _tutti"
else
  echo "zsh is not installed: its completion was not read"
fi
