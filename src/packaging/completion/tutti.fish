# SPDX-License-Identifier: MIT
# Completion of tutti for fish. Verbs, options and words come from the command's own help texts.

function __tutti_lines
    tutti help $argv 2>/dev/null
end

function __tutti_verbs
    __tutti_lines | string replace -rf '^  ([a-z]+)  +(.*)$' '$1\t$2'
end

function __tutti_verb
    set -l words (commandline -opc)
    echo $words[2]
end

function __tutti_options
    set -l option '^ +(?:-\w(?: \w+)?, )?(--?[a-z][a-z_-]*)[^ ]*(?: [^ ]+)? +(.*)$'
    __tutti_lines (__tutti_verb) | string replace -rf $option '$1\t$2'
end

function __tutti_jobs
    tutti ps --json 2>/dev/null | string match -rag '"job": *"([^"]*)"'
end

complete -c tutti -f
complete -c tutti -n 'test (count (commandline -opc)) = 1' -a '(__tutti_verbs)'
complete -c tutti -n 'contains -- (__tutti_verb) help' -a '(__tutti_verbs)'
complete -c tutti -n 'contains -- (__tutti_verb) perf' \
    -a '(__tutti_lines perf | string replace -rf "^  ([a-z0-9]+)  +(.*)\$" "\$1\t\$2")'
complete -c tutti -n 'contains -- (__tutti_verb) run' -F
complete -c tutti -n 'string match -q -- "-*" (commandline -ct)' -a '(__tutti_options)'
complete -c tutti -n 'contains -- (__tutti_verb) ps why' -a '(__tutti_jobs)'
