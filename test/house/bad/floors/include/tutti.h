/* #include "sync/wait.h" */
#include <sync/wait.h>
#include <stdint.h>
