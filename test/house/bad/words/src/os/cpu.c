/* TODO: think */
typedef struct { int x; } cpu_t;
typedef int core_t;
typedef struct cpu { int x; } cpu;
#include <stdatomic.h>
int a(void) { return __atomic_load_n(&w, 0); }
int b(void) { return atomic_load(&w); }
static volatile int c;
static volatile sig_atomic_t d;
/* volatile, atomic_load and a size_t; are only spoken of here */
static uint32_t e(const char *path) { __asm__ volatile("pause"); return open(path, "/tmp/XXXXXX"); }
