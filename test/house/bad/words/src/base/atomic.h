static inline int load(_Atomic int *w) { return atomic_load(w); }
