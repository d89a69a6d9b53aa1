/* Job: Ctrl-C for waits that nobody here is in: torch waits for a future in its own code, for ever.
 * Owns: a handler of SIGINT in front of the one that was there, and the thread it wakes.
 * Never: anything in the handler but a flag; what a program's own handler of SIGINT does is the
 *        program's affair. */
#ifndef TORCH_INTERRUPT_H
#define TORCH_INTERRUPT_H

namespace tutti {

/* Before a future is given to torch: our handler stands in front, also if the program has set one
 * meanwhile. Ctrl-C then calls `ends` in a thread of ours; it is the same function each time. */
void signals_hook(void (*ends)());

/* is_default() -> bool: SIGINT raises KeyboardInterrupt, and no handler of the program's has it. */
void interrupt_setup(void *is_default);

}

#endif
