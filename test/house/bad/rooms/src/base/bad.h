/* Job: nothing.
 * Owns: nothing. */
#define BAD /* Never: too late */
