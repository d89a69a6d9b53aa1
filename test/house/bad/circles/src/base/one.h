#include "base/two.h"
#include "base/alone.h"
