/* The file of measured rules, with any bytes in it: what is taken from it fits the arena's header,
 * and a rank of the job can parse it there, under whatever TUTTI_ALGORITHM says. The header's own
 * text comes from another process: any text of two layers. */
#include "fuzz.h"

#include "coll/select.h"
#include "coll/tuning_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rules rules;
    char taken[RULES_TEXT], room[200];
    struct text why = TEXT_IN(room);
    struct feed feed = { data, size };
    bool head = feed_byte(&feed) & 1;
    char *text = feed_text(&feed, TUNED_FILE - 100), file[TUNED_FILE];
    snprintf(file, sizeof file, "%s%s", head ? TUNED_HEAD "M\n" : "", text);
    text_clear(&why);
    enum tuned is = tuning_file_parse(file, "M", taken, &why);
    FUZZ_MUST(is != TUNED_NONE && memchr(taken, 0, sizeof taken));
    FUZZ_MUST(is == TUNED_HERE || (taken[0] == 0 && why.used > 0));
    if (is == TUNED_HERE) {
        char laid[2 * RULES_TEXT];
        snprintf(laid, sizeof laid, "%s|reduce:-4k=eager", taken);
        FUZZ_MUST(strlen(laid) < RULES_TEXT && select_layers(&rules, laid, &why) == 0);
        FUZZ_MUST(!strcmp(select_algorithm(&rules, KIND_REDUCE, false, 4096)->name, "eager"));
        FUZZ_MUST(select_algorithm(&rules, KIND_REDUCE, true, SIZE_MAX));
    }
    text_clear(&why);
    FUZZ_MUST(select_layers(&rules, text, &why) == 0 || why.used > 0);
    free(text);
    return 0;
}
