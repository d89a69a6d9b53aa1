/* Job: make a terminal for a rank to write to.
 * Owns: nothing.
 * Never: reads it; becomes anybody's controlling terminal.
 */
#ifndef TUTTI_LAUNCH_TERMINAL_H
#define TUTTI_LAUNCH_TERMINAL_H

/* ends[0]: ours, does not block. ends[1]: the rank's. As large as our own terminal. 0 or -errno. */
int terminal_open(int ends[2]);

#endif
