#include "base/one.h"
