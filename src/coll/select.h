/* Job: choose an algorithm; this is the only place that does.
 * Owns: nothing; the rules stand in the arena's header, written by its creator.
 * Never: looks at where a rank's buffer lies: only facts that all ranks share decide.
 *
 * Grammar, the same for the default and for TUTTI_ALGORITHM:
 *     rules   = clause { ";" clause }
 *     clause  = kind [ "/crowded" | "/two" ] ":" choice { "," choice }
 *     choice  = [ low ] "-" high "=" algorithm        bytes of one rank's contribution; "inf";
 *                                                     suffixes k, M, G
 * The clause "device" chooses a road by the same grammar: how a large operation goes if the buffers
 * of all ranks are device memory; bytes of one rank's contribution. `pinned` is used if that road
 * is not possible. A clause "staged" behind it says the same of memory that peers cannot keep open,
 * which goes through the staging on the devices; without one, "device" holds for that, too.
 * The arena's header holds the rules of the machine's file, a "|", and those of TUTTI_ALGORITHM; or
 * only the latter (coll/tuning_file.h). "/crowded" holds for comms with more ranks than CPUs,
 * "/two" for two ranks with a CPU each. A later clause for the same kind replaces the earlier one,
 * and one without either holds for all. Sizes that no choice covers, or that are too large for the
 * algorithm, use the default. A text with "device" or "staged" takes no "/two" of the layers below.
 * The barrier's choice is also the gate of every one-phase algorithm. */
#ifndef TUTTI_COLL_SELECT_H
#define TUTTI_COLL_SELECT_H

#include "coll/algorithms.h"

enum { CHOICES_MAX = 8, LAYERS = 3 };  /* of a clause; the default, the file, the environment */

/* Which comms a clause is for; the first two as `crowded`. */
enum comms { COMMS_OTHER, COMMS_CROWDED, COMMS_TWO, COMMS };

struct choice { size_t low, high; const struct algorithm *algorithm; };
/* pinned: through the staging in the arena. leader: one rank folds for all. peers: each rank folds
 * its share. */
enum road { ROAD_PINNED, ROAD_LEADER, ROAD_PEERS };
struct road_choice { size_t low, high; enum road road; };
/* Searched from the front: a clause's choices, then those of the layer under it, then the
 * default's. */
struct rules {
    /* all first ones, then all second ones …: few are used, and they lie together */
    struct choice choices[LAYERS * CHOICES_MAX][KIND_COUNT][COMMS];
    int used[KIND_COUNT][COMMS];
    /* named: by a layer over the default */
    struct road_choices {
        struct road_choice at[LAYERS * CHOICES_MAX];
        int used;
        bool named;
    } roads[2];
};
/* Device memory that peers keep open and read in place; any other, which is staged. */
enum road_memory { ROAD_PLACE, ROAD_STAGED };

extern const char select_default[];

/* Parses the default, with `text` over it (NULL: none). 0, or -EINVAL with the sentence in why. */
int select_parse(struct rules *rules, const char *text, struct text *why);
/* Whether `text` of TUTTI_ALGORITHM can be used: 0, also for an empty one. -EINVAL with the
 * sentence in why. -ENOMEM. */
int select_check(const char *text, struct text *why);
/* select_parse for a text of two layers, "rules | rules", as the arena's header holds it; the
 * second goes over the first. */
int select_layers(struct rules *rules, const char *text, struct text *why);

const struct algorithm *select_algorithm(const struct rules *rules, enum kind kind,
                                         enum comms comms, size_t bytes);
/* As in a clause: "" for the first. */
const char *select_suffix(enum comms comms);
static inline enum comms select_comms(const struct tutti_comm *comm)
{
    return comm->crowded ? COMMS_CROWDED : comm->watch.size == 2 ? COMMS_TWO : COMMS_OTHER;
}

/* True: a layer over the default says how such memory goes. */
bool select_road_named(const struct rules *rules, enum road_memory memory);
enum road select_road(const struct rules *rules, enum road_memory memory, size_t bytes);
const char *road_name(enum road road);

/* All rows that rules choose from; a row without a name ends them. */
const struct algorithm *select_all(void);
/* NULL: there is none with this name. */
const struct algorithm *select_named(enum kind kind, const char *name);

#endif
