/* Job: the file of rules that were measured on this machine: where it lies, whether it is this
 *      machine's, what it says.
 * Owns: nothing; who makes an arena reads the file once, and what it says stands in the arena's
 *       header from then on.
 * Never: chooses (select does), measures or writes (tutti doctor does), fails: a file that is no
 *        good is as good as none.
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

/* bytes, with the 0 behind them */
enum { TUNED_PATH = 4096, TUNED_FILE = 8192, TUNED_MACHINE = 200 };

enum { TUNED_RULES = RULES_TEXT * 3 / 4 };  /* characters; what is left is for TUTTI_ALGORITHM */

#define TUNED_HEAD "# tutti rules for: "

enum tuned { TUNED_NONE, TUNED_HERE, TUNED_ELSEWHERE, TUNED_DAMAGED };

/* TUTTI_TUNED, or $XDG_CONFIG_HOME/tutti/rules, or $HOME/.config/tutti/rules. False: there shall be
 * none, or no place is known. */
bool tuning_file_path(char path[TUNED_PATH]);

/* "PROCESSOR, 8 CPUs, caches 48 KiB 2 MiB 32 MiB", in one line: alike for all jobs of a machine,
 * wherever they may run on it. */
void tuning_file_machine(char machine[TUNED_MACHINE]);

/* What the text of a file says to `machine`. HERE: rules is what it says, checked, "" if it changes
   nothing. Else rules is "", and why has: ELSEWHERE: the other machine; DAMAGED: what is wrong. */
enum tuned tuning_file_parse(const char *file, const char *machine, char rules[RULES_TEXT],
                             struct text *why);
/* The same for the file there. NONE: there is no such file. */
enum tuned tuning_file_read(const char *path, char rules[RULES_TEXT], struct text *why);

/* The rules of an arena that is about to be made: what the file says, if it is any good, and `said`
 * over it. said may be NULL. */
void tuning_file_lay(const char *said, char rules[RULES_TEXT]);

#endif
