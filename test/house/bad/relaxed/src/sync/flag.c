int a(void) { return load_relaxed32(&w); }
int b(void) { return load_relaxed32(&w); /* relaxed: own word */ }
int c(void)
{
    /* relaxed: nobody else writes it,
       and the fence above orders it */
    store_relaxed64(&w, load_relaxed64(&w) + 1);
    store_relaxed32(&v, 1);
    done();
    store_relaxed32(&v, 1);
    /* it is relaxed for no reason */
    store_relaxed32(&v, 1);
    return fetch_add_relaxed32(&w, 1);
}
