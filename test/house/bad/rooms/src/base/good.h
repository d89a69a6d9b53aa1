/* Job: nothing.
 * Owns: nothing.
 * Never: anything. */
#define GOOD
