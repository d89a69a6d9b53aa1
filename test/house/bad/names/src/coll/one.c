/* Another room of the same name. */
int another;
