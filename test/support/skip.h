/* Job: skip a test and say why.
 * Owns: nothing.
 * Never: skips in silence. It is a macro: who uses it includes <cmocka.h>. */
#ifndef TUTTI_TEST_SUPPORT_SKIP_H
#define TUTTI_TEST_SUPPORT_SKIP_H

/* The reason as for printf: what this machine lacks. */
#define skip_because(...) \
    (print_message("skipped: "), print_message(__VA_ARGS__), print_message("\n"), skip())

#endif
