/* How the ends are written. */
void a(void) { store(&w, 1); /* E1 release, E6 fence: the payload is there */ }
void b(void) { load(&w); }   // E1, E3 acquire
void c(void) {
    /* E2 release */
    fence();
    load(&v);                /* E3 acquire, E6 acquire */
    load(&x);                /* E5 */
    store(&x, "/* E2 acquire */");
    store(&x, 1);            /* E5 and E1 */
}
