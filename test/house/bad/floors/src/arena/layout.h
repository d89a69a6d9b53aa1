#include "os/futex.h"
