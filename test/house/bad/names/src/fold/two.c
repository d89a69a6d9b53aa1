/* A tag that another file has. */
struct two { struct one *of; };

static struct one { int other; } other;
