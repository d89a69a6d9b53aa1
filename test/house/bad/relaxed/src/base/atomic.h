static inline int load_relaxed32(int *w) { return atomic_load_explicit(w, memory_order_relaxed); }
