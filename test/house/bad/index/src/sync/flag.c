/* Their ends. */
void go(void) { store(1); }    /* E1 release */
/* E1 acquire: an end above its line, with a word on it, is no definition */
int gone(void) { return load(1); }
void come(void) { store(2); }    /* E2 release */
int came(void) { return load(2); }    /* E2 acquire */
