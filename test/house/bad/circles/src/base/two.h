#include "base/alone.h"
