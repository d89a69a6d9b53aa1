/* The same room. */
#include "base/one.h"
