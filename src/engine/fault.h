/* Job: make faults on purpose, for tests: kill, stop, delay or abort this rank at its N-th call.
 * Owns: tutti_comm.engine.faults.
 * Never: does anything on other ranks. */
#ifndef TUTTI_ENGINE_FAULT_H
#define TUTTI_ENGINE_FAULT_H

#include "group/comm.h"

/* Adds a fault "RANK:OPERATION#N:kill|stop|delay=MS|abort". 0, -EINVAL with the reason in why,
 * -ENOSPC. Faults of other ranks are checked and dropped. */
int  fault_add(struct tutti_comm *comm, const char *what, struct text *why);
void fault_strike(struct tutti_comm *comm, enum kind kind);  /* all faults due at this call */

#endif
