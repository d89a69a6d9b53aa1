/* Job: make constants small in a test's build, so that few bytes make several rounds.
 * Owns: nothing.
 * Never: stands in an expression that runs. TINY is for enum constants; a release build has the
 *        normal ones. */
#ifndef TUTTI_BASE_TINY_H
#define TUTTI_BASE_TINY_H

#if defined(TUTTI_TINY)
#define TINY(normal, tiny) (tiny)
#else
#define TINY(normal, tiny) (normal)
#endif

#endif
