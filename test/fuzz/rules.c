/* TUTTI_ALGORITHM, and the rules in the header of an arena, which another process wrote. Whatever
 * parses leaves a choice for every size. */
#include "fuzz.h"

#include "coll/select.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rules rules;
    char room[200];
    struct feed feed = { data, size };
    struct text why = { room, 1 + feed_byte(&feed) % sizeof room, 0 };
    bool roomy = why.room > 40;
    char *text = feed_text(&feed, RULES_TEXT - 1);
    text_clear(&why);
    int r = select_parse(&rules, text, &why);
    free(text);
    FUZZ_MUST(r == 0 || !roomy || why.used > 0);
    if (r < 0)
        return 0;
    static const size_t sizes[] = { 0, 1, 40, 41, 4096, 65536, 65537, SIZE_MAX };
    for (const struct algorithm *a = select_all(); a->name; a++)
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
            const struct algorithm *chosen = select_algorithm(&rules, a->kind, i & 1, sizes[i / 2]);
            if (sizes[i / 2] == 0 || a->most == SIZE_MAX)
                FUZZ_MUST(chosen && chosen->kind == a->kind);
            FUZZ_MUST(!chosen || chosen->most >= sizes[i / 2]);
        }
    return 0;
}
