#include "sync/wait.h"
#include "os/futex.h"
#include <tutti.h>
#include "arena/layout.h"
#include "pattern/pipeline.h"
#include "../os/futex.h"
#include "futex.h"
