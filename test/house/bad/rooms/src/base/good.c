/* Why it is so. */
int good;
