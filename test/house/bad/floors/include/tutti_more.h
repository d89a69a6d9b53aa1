#include "tutti.h"
#include "os/futex.h"
