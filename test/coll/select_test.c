/* The rules: what each clause changes, what it leaves, and what is said about one that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coll/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct rules rules;

static void parse(const char *text)
{
    char room[256];
    struct text why = TEXT_IN(room);
    text_clear(&why);
    if (select_parse(&rules, text, &why) != 0)
        fail_msg("\"%s\": %s", text ? text : "(none)", room);
    assert_string_equal(room, "");
}

static void chosen_at(int line, enum kind kind, enum comms comms, size_t bytes,
                      const char *expected)
{
    const struct algorithm *a = select_algorithm(&rules, kind, comms, bytes);
    if (!a || a->kind != kind || strcmp(a->name, expected) != 0)
        fail_msg("line %d: %s of %zu bytes by %s, not %s", line, kind_name(kind), bytes,
                 a ? a->name : "nothing", expected);
}
#define CHOSEN(kind, comms, bytes, expected) chosen_at(__LINE__, kind, comms, bytes, expected)

static void the_default(void **state)
{
    (void)state;
    parse(NULL);
    CHOSEN(KIND_BARRIER, false, 0, "flags");
    CHOSEN(KIND_BARRIER, true, 0, "central");
    CHOSEN(KIND_ALL_REDUCE, false, 65536, "eager");
    /* not everybody folds everything on CPUs that are shared */
    CHOSEN(KIND_ALL_REDUCE, true, 32769, "pipelined");
    CHOSEN(KIND_REDUCE, true, 262144, "eager");
    CHOSEN(KIND_REDUCE, false, 65537, "pipelined");
    CHOSEN(KIND_SCATTER, true, 262144, "eager");
    CHOSEN(KIND_SCATTER, true, 262145, "pipelined");
    CHOSEN(KIND_SCATTER, false, 131072, "eager");
    CHOSEN(KIND_SCATTER, false, 131073, "pipelined");
    CHOSEN(KIND_SCATTER, true, 2 << 20, "pipelined");
    CHOSEN(KIND_SCATTER, true, (2 << 20) + 1, "direct");
    CHOSEN(KIND_SCATTER, false, SIZE_MAX, "pipelined");
    for (enum comms crowded = COMMS_OTHER; crowded <= COMMS_CROWDED; crowded++) {
        CHOSEN(KIND_ALL_REDUCE, crowded, 0, "inline");
        CHOSEN(KIND_ALL_REDUCE, crowded, 88, "inline");
        CHOSEN(KIND_ALL_REDUCE, crowded, 89, "eager");
        CHOSEN(KIND_ALL_REDUCE, crowded, 32768, "eager");
        CHOSEN(KIND_ALL_REDUCE, crowded, 65537, "pipelined");
        CHOSEN(KIND_ALL_REDUCE, crowded, SIZE_MAX, "pipelined");
        CHOSEN(KIND_ALL_TO_ALL, crowded, 131072, "eager");
        CHOSEN(KIND_ALL_TO_ALL, crowded, 131073, "pipelined");
        CHOSEN(KIND_REDUCE_SCATTER, crowded, 131072, "eager");
        CHOSEN(KIND_REDUCE_SCATTER, crowded, 131073, "pipelined");
        CHOSEN(KIND_REDUCE, crowded, 88, "inline");
        CHOSEN(KIND_REDUCE, crowded, 65536, "eager");
        CHOSEN(KIND_REDUCE, crowded, 262145, "pipelined");
        CHOSEN(KIND_BROADCAST, crowded, 88, "inline");
        CHOSEN(KIND_BROADCAST, crowded, 89, "eager");
        CHOSEN(KIND_BROADCAST, crowded, 65537, "pipelined");
    }
}

/* Field by field: a road's choice has bytes between its fields, which nobody sets. */
static void same_rules(const struct rules *as)
{
    assert_memory_equal(rules.choices, as->choices, sizeof rules.choices);
    assert_memory_equal(rules.used, as->used, sizeof rules.used);
    for (int i = 0; i < 2; i++) {
        const struct road_choices *is = &rules.roads[i], *was = &as->roads[i];
        assert_int_equal(is->named, was->named);
        assert_int_equal(is->used, was->used);
        for (int n = 0; n < is->used; n++) {
            assert_int_equal(is->at[n].low, was->at[n].low);
            assert_int_equal(is->at[n].high, was->at[n].high);
            assert_int_equal(is->at[n].road, was->at[n].road);
        }
    }
}

/* No text, blanks and stray semicolons change nothing. */
static void nothing_said(void **state)
{
    (void)state;
    static struct rules plain;
    static const char *const same[] = { "", " ", ";", ";;; ;" };
    parse(NULL);
    plain = rules;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        parse(same[i]);
        same_rules(&plain);
    }
    parse(select_default);      /* said again: the same choices, with themselves to fall back to */
    for (enum kind kind = KIND_BARRIER; kind <= KIND_ALL_REDUCE; kind++)
        for (size_t bytes = 0; bytes < 70000; bytes++)
            assert_ptr_equal(select_algorithm(&rules, kind, bytes % 2, bytes),
                             select_algorithm(&plain, kind, bytes % 2, bytes));
}

static void clauses(void **state)
{
    (void)state;
    parse("all_reduce:-inf=pipelined");
    CHOSEN(KIND_ALL_REDUCE, false, 0, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, true, 8, "pipelined"); /* a plain clause holds for crowded comms, too */
    CHOSEN(KIND_REDUCE, false, 8, "inline");                        /* and for its own kind alone */
    parse("all_reduce:-1k=eager,2k-4k=eager,-inf=pipelined;barrier/crowded:-inf=flags");
    CHOSEN(KIND_ALL_REDUCE, false, 1024, "eager");
    CHOSEN(KIND_ALL_REDUCE, false, 1025, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, false, 2047, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, false, 2048, "eager");
    CHOSEN(KIND_ALL_REDUCE, false, 4097, "pipelined");
    CHOSEN(KIND_BARRIER, false, 0, "flags");
    CHOSEN(KIND_BARRIER, true, 0, "flags");
    parse("reduce/crowded:-inf=pipelined");
    CHOSEN(KIND_REDUCE, true, 8, "pipelined");
    CHOSEN(KIND_REDUCE, false, 8, "inline");
    /* the later one takes the earlier one's place */
    parse("reduce/crowded:-inf=pipelined;reduce:-inf=eager");
    CHOSEN(KIND_REDUCE, true, 8, "eager");
    parse("reduce:-inf=eager;reduce:-inf=pipelined");
    CHOSEN(KIND_REDUCE, false, 8, "pipelined");
    parse("broadcast:0-0=pipelined,1-8=inline,1M-2GiB=pipelined");
    CHOSEN(KIND_BROADCAST, false, 0, "pipelined");
    CHOSEN(KIND_BROADCAST, false, 1, "inline");
    CHOSEN(KIND_BROADCAST, false, (size_t)2 << 30, "pipelined");
}

/* What holds for two ranks, for more ranks than CPUs, and for others. */
static void some_comms(void **state)
{
    (void)state;
    parse(NULL);
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 88, "inline");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 256 << 10, "eager");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, (256 << 10) + 1, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, COMMS_OTHER, 256 << 10, "pipelined");
    CHOSEN(KIND_REDUCE, COMMS_TWO, 256 << 10, "eager");
    CHOSEN(KIND_REDUCE, COMMS_TWO, (256 << 10) + 1, "rooted");
    CHOSEN(KIND_REDUCE, COMMS_TWO, (16 << 20) + 1, "pipelined");
    CHOSEN(KIND_REDUCE, COMMS_OTHER, (256 << 10) + 1, "pipelined");
    CHOSEN(KIND_ALL_TO_ALL, COMMS_TWO, 256 << 10, "eager");
    CHOSEN(KIND_ALL_TO_ALL, COMMS_TWO, (256 << 10) + 1, "pipelined");
    CHOSEN(KIND_SCAN, COMMS_TWO, 256 << 10, "eager");
    CHOSEN(KIND_SCAN, COMMS_TWO, (256 << 10) + 1, "pipelined");
    CHOSEN(KIND_EXSCAN, COMMS_TWO, 256 << 10, "eager");
    CHOSEN(KIND_EXSCAN, COMMS_OTHER, 65537, "pipelined");
    CHOSEN(KIND_BARRIER, COMMS_TWO, 0, "flags");
    parse("all_reduce:-inf=pipelined");
    for (enum comms comms = COMMS_OTHER; comms < COMMS; comms++)
        CHOSEN(KIND_ALL_REDUCE, comms, 8, "pipelined");
    parse("all_reduce/two:-inf=eager;barrier/two:-inf=central");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 8, "eager");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 1 << 20, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, COMMS_OTHER, 8, "inline");
    CHOSEN(KIND_ALL_REDUCE, COMMS_CROWDED, 8, "inline");
    CHOSEN(KIND_BARRIER, COMMS_TWO, 0, "central");
    CHOSEN(KIND_BARRIER, COMMS_OTHER, 0, "flags");
    parse("all_reduce/two:-inf=eager;all_reduce:-inf=pipelined");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 8, "pipelined");
    /* who says how device memory goes has it so from the same sizes on */
    parse("device:-inf=peers");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 65536, "eager");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 65537, "pipelined");
    parse("reduce/two:-inf=eager; staged:-1m=pinned,-inf=leader");
    CHOSEN(KIND_ALL_REDUCE, COMMS_TWO, 65537, "pipelined");
    CHOSEN(KIND_REDUCE, COMMS_TWO, 65537, "eager");
}

/* Every collective of every size: what no choice covers, or what is too large for the choice, is
 * done all the same, as the default would. */
static void never_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = { NULL, "all_reduce:-8=inline",
                                         "all_reduce:-inf=inline;"
                                         "reduce:-inf=eager;broadcast:100-200=eager",
                                         "barrier:5-6=central" };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        parse(texts[t]);
        for (enum kind kind = KIND_BARRIER; kind <= KIND_SAME; kind++)
            for (enum comms comms = COMMS_OTHER; comms < COMMS; comms++)
                for (int shift = -1; shift < 64; shift++) {
                    size_t bytes = shift < 0 ? 0 : (size_t)1 << shift;
                    const struct algorithm *a = select_algorithm(&rules, kind, comms, bytes);
                    if (!a)
                        fail_msg("nothing is chosen for %s of %zu bytes: it lacks a row in"
                                 " algorithm_table, or a range up to inf in select_default",
                                 kind_name(kind), bytes);
                    assert_int_equal(a->kind, kind);
                    assert_true(bytes <= a->most);
                }
    }
    parse("all_reduce:-8=inline");
    CHOSEN(KIND_ALL_REDUCE, false, 20000, "eager");
    /* as select_default has it: eager up to 64k only */
    CHOSEN(KIND_ALL_REDUCE, false, 70000, "pipelined");
    parse("barrier:5-6=central");
    CHOSEN(KIND_BARRIER, true, 0, "central");
}

static void refused(const char *text, const char *reason)
{
    char room[512];
    struct text why = TEXT_IN(room);
    text_clear(&why);
    int r = select_parse(&rules, text, &why);
    if (r != -EINVAL || !strstr(room, reason))
        fail_msg("\"%s\" gave %d and \"%s\", should be refused with \"%s\"", text, r, room, reason);
}

static void wrong(void **state)
{
    (void)state;
    refused("pipelined", "expected KIND:LOW-HIGH=ALGORITHM");
    refused("all_reduce=pipelined", "expected KIND:LOW-HIGH=ALGORITHM");
    refused("all_reduse:-inf=pipelined", "\"all_reduse\" has no algorithms");
    refused("all_reduse:-inf=pipelined",
            "kinds: barrier broadcast reduce all_reduce all_reduce_many");
    refused(":-inf=pipelined", "\"\" has no algorithms");
    refused("all_reduce/full:-inf=pipelined", "\"all_reduce/full\" has no algorithms");
    refused("all_reduce/:-inf=pipelined", "\"all_reduce/\" has no algorithms");
    refused("all_reduce:pipelined", "\"pipelined\": expected LOW-HIGH=ALGORITHM");
    refused("all_reduce:5=pipelined", "expected LOW-HIGH=ALGORITHM");
    refused("all_reduce:-5", "expected LOW-HIGH=ALGORITHM");
    refused("all_reduce:=r-5", "expected LOW-HIGH=ALGORITHM");
    refused("all_reduce:x-5=pipelined", "\"x-5\": expected sizes in bytes");
    refused("all_reduce:0-=pipelined", "expected sizes in bytes");
    refused("all_reduce:9-5=pipelined", "\"9-5\": expected sizes in bytes, low to high");
    refused("all_reduce:-5q=pipelined", "expected sizes in bytes");
    refused("all_reduce:-99999999999999999999=pipelined", "expected sizes in bytes");
    refused("all_reduce:-inf=rings",
            "\"rings\" is no algorithm of all_reduce; there are: inline eager pipelined");
    refused("barrier:-inf=pipelined",
            "\"pipelined\" is no algorithm of barrier; there are: flags central");
    refused("all_reduce:-inf=", "\"\" is no algorithm");
    refused("all_reduce:-inf=pipelined;reduce:-inf=tree", "\"tree\" is no algorithm of reduce");
    refused("all_reduce:", "all_reduce: no choice");
    refused("all_reduce:,,", "all_reduce: no choice");
    refused("all_reduce:-1=inline,-2=inline,-3=inline,-4=inline,-5=inline,-6=inline,-7=inline,-8="
            "inline,-9=inline",
            "more than 8 choices");
    parse("all_reduce:-1=inline,-2=inline,-3=inline,-4=inline,-5=inline,-6=inline,-7=inline,-8="
          "inline");
}

/* Rules that people have written stay valid: the names of before are those of today. */
static void names_of_before(void **state)
{
    (void)state;
    parse("all_reduce:-88=line,-64k=flat,-1m=ring,-inf=pull");
    CHOSEN(KIND_ALL_REDUCE, false, 88, "inline");
    CHOSEN(KIND_ALL_REDUCE, false, 65536, "eager");
    CHOSEN(KIND_ALL_REDUCE, false, 1 << 20, "pipelined");
    CHOSEN(KIND_ALL_REDUCE, false, SIZE_MAX, "direct");
}

static void roads(void **state)
{
    (void)state;
    parse(NULL);
    assert_int_equal(select_road(&rules, ROAD_PLACE, 0), ROAD_PINNED);
    assert_int_equal(select_road(&rules, ROAD_PLACE, 1 << 20), ROAD_PINNED);
    assert_int_equal(select_road(&rules, ROAD_PLACE, (1 << 20) + 1), ROAD_LEADER);
    assert_int_equal(select_road(&rules, ROAD_PLACE, SIZE_MAX), ROAD_LEADER);
    parse("device:1M-2M=peers,-100=leader");
    assert_int_equal(select_road(&rules, ROAD_PLACE, 100), ROAD_LEADER);
    assert_int_equal(select_road(&rules, ROAD_PLACE, 101), ROAD_PINNED);     /* the default */
    assert_int_equal(select_road(&rules, ROAD_PLACE, 1 << 20), ROAD_PEERS);
    assert_int_equal(select_road(&rules, ROAD_PLACE, (2 << 20) + 1), ROAD_LEADER);
    assert_string_equal(road_name(ROAD_PEERS), "peers");
    CHOSEN(KIND_ALL_REDUCE, false, 88, "inline");
    parse("device:-1=peers,-2=peers,-3=peers,-4=peers,-5=peers,-6=peers,-7=peers,-8=peers");
    assert_int_equal(select_road(&rules, ROAD_PLACE, 8), ROAD_PEERS);
    assert_int_equal(select_road(&rules, ROAD_PLACE, 9), ROAD_PINNED);
    parse(NULL);
    assert_int_equal(select_road(&rules, ROAD_STAGED, 4 << 20), ROAD_PINNED);
    assert_int_equal(select_road(&rules, ROAD_STAGED, (4 << 20) + 1), ROAD_LEADER);
    parse("device:-1M=peers,-inf=pinned");                           /* of both */
    assert_int_equal(select_road(&rules, ROAD_STAGED, 1 << 20), ROAD_PEERS);
    assert_int_equal(select_road(&rules, ROAD_STAGED, SIZE_MAX), ROAD_PINNED);
    parse("device:-1M=peers;staged:-2M=leader");
    assert_int_equal(select_road(&rules, ROAD_PLACE, 1 << 20), ROAD_PEERS);
    assert_int_equal(select_road(&rules, ROAD_STAGED, 2 << 20), ROAD_LEADER);
    parse("staged:-1k=leader");
    assert_int_equal(select_road(&rules, ROAD_PLACE, 1 << 10), ROAD_PINNED);
    assert_int_equal(select_road(&rules, ROAD_STAGED, 1 << 10), ROAD_LEADER);
    refused("staged:", "staged: no choice; expected LOW-HIGH=ROAD, as in -1m=pinned");
    refused("device:-inf=pipelined",
            "\"pipelined\" is no road of device memory; there are: pinned leader peers");
    refused("device:", "device: no choice");
    refused("device/crowded:-inf=pinned", "\"device\" has no algorithms");
    refused("device:7-5=pinned", "\"7-5\": expected sizes in bytes");
    refused("device:pinned", "expected LOW-HIGH=ALGORITHM");
    refused("device:-1=peers,-2=peers,-3=peers,-4=peers,-5=peers,-6=peers,-7=peers,-8=peers,-9="
            "peers",
            "more than 8 choices");
}

/* Any bytes at all: refused or taken, never worse. */
static void anything(void **state)
{
    (void)state;
    static const char letters[] =
        "all_reduce:-40=inline,-64k=eager;barrier/crowded:-inf=central =;:,-/\x80\xff"
        "09kMG";
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        size_t n = 0;
        for (size_t most = seed % (sizeof text - 1); n < most; n++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            text[n] = letters[seed % (sizeof letters - 1)];
        }
        text[n] = 0;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        char room[64];
        struct text why = TEXT_IN(room);
        int r = select_parse(&rules, text, &why);
        assert_true(r == 0 || r == -EINVAL);
    }
}

static void is_row(int number, enum kind kind, const char *name)
{
    assert_int_equal(algorithm_table[number].kind, kind);
    assert_string_equal(algorithm_table[number].name, name);
}

/* Each row whole and of a name of its own, those of a kind together, and where the code that names
 * one expects it. */
static void rows(void **state)
{
    (void)state;
    int n = 0;
    for (const struct algorithm *a = select_all(); a->name; a++, n++) {
        assert_true(a->name[0] && a->help[0] && a->advance);
        for (const struct algorithm *b = select_all(); b < a; b++)
            assert_false(a->kind == b->kind
                         && (strcmp(a->name, b->name) == 0 || a[-1].kind != a->kind));
    }
    assert_true(n > KIND_SAME);
    is_row(ALGORITHM_OP_CREATE, KIND_OP_CREATE, "inline");
    is_row(ALGORITHM_BARRIER_FLAGS, KIND_BARRIER, "flags");
    is_row(ALGORITHM_ALL_REDUCE_INLINE, KIND_ALL_REDUCE, "inline");
    is_row(ALGORITHM_ALL_REDUCE_EAGER, KIND_ALL_REDUCE, "eager");
    refused("op_create:-inf=inline", "\"op_create\" has no algorithms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default), cmocka_unit_test(nothing_said), cmocka_unit_test(clauses),
 cmocka_unit_test(some_comms),
        cmocka_unit_test(never_nothing), cmocka_unit_test(wrong), cmocka_unit_test(names_of_before),
        cmocka_unit_test(roads), cmocka_unit_test(anything), cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
