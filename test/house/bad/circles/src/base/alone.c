#include "base/alone.h"
#include <base/one.h>
