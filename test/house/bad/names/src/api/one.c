/* It shows what base/one does, and may be called so. */
int shown;
