/* Job: find and read the file of rules that were measured on this machine; check that it is this
 *      machine's.
 * Owns: nothing; the rank that makes an arena reads the file once, and the rules stand in the
 *       arena's header from then on.
 * Never: chooses (select does), measures or writes (tutti doctor does), fails: a bad file counts as
 *        none.
 *
 * The file:
 *     # tutti rules for: MACHINE        the first line; MACHINE as tuning_file_machine says it
 *     # …                               more comments
 *     rules                             by select's grammar, a clause a line or several with ";"
 *                                       between them
 * Built in < this file < TUTTI_ALGORITHM. */
#ifndef TUTTI_COLL_TUNING_FILE_H
#define TUTTI_COLL_TUNING_FILE_H

#include "arena/layout.h"
#include "base/text.h"

/* bytes, with the final 0 */
enum { TUNED_PATH = 4096, TUNED_FILE = 8192, TUNED_MACHINE = 200 };

enum { TUNED_RULES = RULES_TEXT * 3 / 4 };  /* characters; the rest is for TUTTI_ALGORITHM */

#define TUNED_HEAD "# tutti rules for: "

enum tuned { TUNED_NONE, TUNED_HERE, TUNED_ELSEWHERE, TUNED_DAMAGED };

/* TUTTI_TUNED, or $XDG_CONFIG_HOME/tutti/rules, or $HOME/.config/tutti/rules. False: TUTTI_TUNED is
 * "none", or no path is known. */
bool tuning_file_path(char path[TUNED_PATH]);

/* "PROCESSOR, 8 CPUs, caches 48 KiB 2 MiB 32 MiB", in one line: the same for all jobs of a machine,
 * whichever CPUs they may use. */
void tuning_file_machine(char machine[TUNED_MACHINE]);

/* Reads the text of a file for `machine`. HERE: rules holds its checked rules, "" if it changes
   nothing. Else rules is "", and why holds: ELSEWHERE: the other machine; DAMAGED: the fault. */
enum tuned tuning_file_parse(const char *file, const char *machine, char rules[RULES_TEXT],
                             struct text *why);
/* The same for the file at `path`. NONE: there is no such file. */
enum tuned tuning_file_read(const char *path, char rules[RULES_TEXT], struct text *why);

/* The rules of an arena that is about to be made: those of the file, if it is good, and `said` over
 * them. said may be NULL. */
void tuning_file_lay(const char *said, char rules[RULES_TEXT]);

#endif
