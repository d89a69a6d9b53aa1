/* Job: let Ctrl-C end waits that are not ours: torch waits for a future in its own code, for ever.
 * Owns: a handler of SIGINT that calls the former one; the thread that it wakes.
 * Never: does more in the handler than call the former one and post a semaphore; replaces what a
 *        program's own handler of SIGINT does. */
#ifndef TORCH_INTERRUPT_H
#define TORCH_INTERRUPT_H

namespace tutti {

/* Call it before torch gets a future. It installs our handler before the present one, also if the
 * program has set a new one. Ctrl-C then calls `ends` in a thread of ours. `ends` is the same
 * function each time. */
void signals_hook(void (*ends)());

/* is_default() -> bool: SIGINT raises KeyboardInterrupt, without a handler of the program. */
void interrupt_setup(void *is_default);

}

#endif
