#include "base/three.h"
#include "os/one.h"
#include "base/one.h"
/* #include "base/alone.h" */
