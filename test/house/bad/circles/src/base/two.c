#include "base/two.h"

#include "base/three.h"
