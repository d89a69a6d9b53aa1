/* Job: hold the page of tutti trace --html, but for its data.
 * Owns: nothing.
 * Never: knows a job. */
#ifndef TUTTI_CLI_TRACE_PAGE_H
#define TUTTI_CLI_TRACE_PAGE_H

extern const char *const trace_page[];               /* lines; NULL at the end */

#endif
