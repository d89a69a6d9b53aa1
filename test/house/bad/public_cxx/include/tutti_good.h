#include <stddef.h>
int tutti_good(size_t bytes);
