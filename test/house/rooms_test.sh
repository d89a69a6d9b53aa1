# A room says what it is: its header opens with a comment of Job, Owns and Never, its .c
# with a comment.
. "$(dirname "${BASH_SOURCE[0]}")/house.sh"

rule() {
  cd "$1" || exit 1
  mapfile -t files < <(c_files src)
  lines '
    function close_room() {
        if (file ~ /\.h$/ && (opening !~ /Job:/ || opening !~ /Owns:/ || opening !~ /Never:/))
            print file ":1: the header does not open with Job:, Owns: and Never:"
        if (file ~ /\.cc?$/ && opening == "") print file ":1: the file does not open with a comment"
    }
    FNR == 1 { if (file != "") close_room(); file = FILENAME; opening = ""; open = 1 }
    open && CODE !~ /^[ \t]*$/ { open = 0 }
    open { opening = opening NOTE }
    END { if (file != "") close_room() }' "${files[@]}"
}

house
