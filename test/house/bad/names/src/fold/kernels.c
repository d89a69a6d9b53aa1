/* A name that rooms may share. */
int kernels;
