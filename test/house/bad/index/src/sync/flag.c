/* Their ends. */
void go(void) { store(1); }    /* E1 release */
int gone(void) { return load(1); }    /* E1 acquire */
void come(void) { store(2); }    /* E2 release */
int came(void) { return load(2); }    /* E2 acquire */
