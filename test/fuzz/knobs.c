/* Every TUTTI_ variable with any value: numbers lie in their ranges, what is wrong is said in a
 * sentence; and the parsers under them. */
#include "fuzz.h"

#include "api/world.h"
#include "base/knob.h"
#include "base/text.h"

static void parse(const char *text)
{
    char room[64];
    struct text t = TEXT_IN(room);
    int64_t ms = 0, n = 0;
    uint64_t bytes = 0;
    text_clear(&t);
    if (text_parse_duration_ms(text, &ms) == 0) {
        FUZZ_MUST(ms >= -1);
        text_add_duration(&t, ms < 0 ? UINT64_MAX : (uint64_t)ms);
    }
    if (text_parse_bytes(text, &bytes) == 0)
        text_add_bytes(&t, bytes);
    if (text_parse_int(text, -1000, INT64_MAX, &n) == 0)
        FUZZ_MUST(n >= -1000);
    if (text_parse_int(text, INT64_MIN, 5, &n) == 0)
        FUZZ_MUST(n <= 5);
    text_add_padded(&t, text, (int)strlen(text) % 100);
    FUZZ_MUST(t.used < t.room && room[t.used] == 0);
}

static void numbers(enum knob_id id)
{
    const struct knob *row = knob_row(id);
    const char *text;
    char why[120];
    int64_t value = row->low;
    memset(why, 1, sizeof why);
    int r = knob_int(id, &value, why, 1 + (int)sizeof why / (1 + (int)id % 3) - 1);
    FUZZ_MUST(r >= 0 || memchr(why, 0, sizeof why));
    if (r == 1)
        FUZZ_MUST(value >= row->low && value <= row->high);
    knob_text(id, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    int n = 1 + feed_byte(&feed) % 4;
    for (int i = 0; i < KNOB_COUNT; i++)
        unsetenv(knob_row((enum knob_id)i)->name);
    for (int i = 0; i < n; i++) {
        enum knob_id id = (enum knob_id)(feed_byte(&feed) % KNOB_COUNT);
        char *text = feed_text(&feed, i + 1 < n ? feed_byte(&feed) % 64 : feed.left);
        setenv(knob_row(id)->name, text, 1);
        parse(text);
        numbers(id);
        free(text);
    }
    char room[256];
    struct text why = TEXT_IN(room);
    tutti_options options;
    text_clear(&why);
    int r = world_options(&options, NULL, &why);
    FUZZ_MUST(r == 0 || why.used > 0);
    if (r == 0)
        FUZZ_MUST(options.size >= 0 && options.size <= 1024 && options.rank >= 0
                  && options.rank < 1024);
    return 0;
}
