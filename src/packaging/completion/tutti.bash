# SPDX-License-Identifier: MIT
# Completion of tutti for bash. Verbs, options and words come from the command's own help texts, so
# this file names none of them.

_tutti_from_help() {  # VERB: its options and words, a line each
  "${COMP_WORDS[0]}" help "$@" 2>/dev/null | awk '
    /^  +-/ {
      line = $0
      sub(/   .*/, "", line); gsub(/[,\[=]/, " ", line)
      n = split(line, word, " ")
      for (i = 1; i <= n; i++)
        if (word[i] ~ /^-/) print word[i]
    }
    /^  [a-z][a-z0-9_]*  / { print $1 }
    /^or a collective: / { sub(/^or a collective: /, ""); more = 1 }
    more { gsub(/[ ,]+/, "\n"); print; if (/[.]$/ || !NF) more = 0 }
    /^$/ { more = 0 }'
}

_tutti_values() {  # VERB OPTION: the words that it takes, as --bind core|numa|none
  "${COMP_WORDS[0]}" help "$1" 2>/dev/null |
    sed -nE "s/^ +(-[a-z], )?$2[ =]([a-z]+(\|[a-z]+)+).*/\2/p" | tr '|' '\n'
}

_tutti_jobs() {
  "${COMP_WORDS[0]}" ps --json 2>/dev/null | grep -o '"job": *"[^"]*"' | cut -d'"' -f4
}

_tutti() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]:-}
  local word values i
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_tutti_from_help | grep -v '^-')" -- "$cur")
    return
  fi
  if [ "$verb" = run ]; then  # behind the program its own arguments: files
    for ((i = 2; i < COMP_CWORD; i++)); do
      word=${COMP_WORDS[i]}
      case $word in
        -n|--nproc*|--bind|--timeout|--grace|--restart|--max*) [[ $word = *=* ]] || i=$((i + 1)) ;;
        -*) ;;
        *)
          if declare -F _command_offset >/dev/null; then
            _command_offset "$i"
          else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
          fi
          return ;;
      esac
    done
  fi
  case $prev in -*)
    values=$(_tutti_values "$verb" "$prev")
    if [ -n "$values" ]; then
      mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
      return
    fi ;;
  esac
  case $cur in
    -*)
      mapfile -t COMPREPLY < <(compgen -W "$(_tutti_from_help "$verb" | grep '^-')" -- "$cur") ;;
    *)
      case $verb in
        help|perf)
          [ "$verb" = perf ] && set -- perf || set --
          word=$(_tutti_from_help "$@" | grep -v '^-')
          mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur") ;;
        run) mapfile -t COMPREPLY < <(compgen -c -d -- "$cur") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_tutti_jobs)" -f -- "$cur") ;;
      esac ;;
  esac
}

complete -o filenames -F _tutti tutti
