# Splits each line of C into CODE and NOTE (comments). INSIDE: a /* is still open.
FNR == 1 { INSIDE = 0 }
{
    CODE = ""; NOTE = ""; OPENED = 0; LEFT = $0
    while (LEFT != "") {
        if (INSIDE) {
            AT = index(LEFT, "*/")
            if (!AT) { NOTE = NOTE LEFT; break }
            NOTE = NOTE substr(LEFT, 1, AT + 1); LEFT = substr(LEFT, AT + 2); INSIDE = 0
            continue
        }
        if (!match(LEFT, /\/\*|\/\/|"|'/)) { CODE = CODE LEFT; break }
        CODE = CODE substr(LEFT, 1, RSTART - 1); LEFT = substr(LEFT, RSTART)
        MARK = substr(LEFT, 1, 1)
        if (substr(LEFT, 1, 2) == "//") { NOTE = NOTE LEFT; break }
        if (MARK == "/") { INSIDE = 1; NOTE = NOTE "/*"; LEFT = substr(LEFT, 3); continue }
        for (AT = 2; AT <= length(LEFT) && substr(LEFT, AT, 1) != MARK; AT++)
            if (substr(LEFT, AT, 1) == "\\") AT++
        CODE = CODE substr(LEFT, 1, AT); LEFT = substr(LEFT, AT + 1)
    }
}
