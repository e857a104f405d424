/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of data sets that are opened whole; see replay.h. The input's first byte
 * says which, the rest is its file: t texts with a label as TSV, j as JSONL, d texts as
 * JSONL, z an .npz, c a table as CSV.
 *
 * Whatever the bytes: no crash, nothing left allocated; what is accepted has samples,
 * of which the first and the last can be read or say why not; what is refused has a
 * sentence of one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/fields.h"
#include "t/data/fixture.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static const struct kind {
    char letter;
    const char *file, *name;
    const char *const *set;
} kinds[] = {
#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})
    {'t', "rows.tsv", "labelled_text", SET("tokenizer", "bytes", "seq_len", "8")},
    {'j', "rows.jsonl", "labelled_text", SET("tokenizer", "bytes", "seq_len", "8")},
    {'d', "texts.jsonl", "packed_text", SET("seq_len", "4")},
    {'z', "arrays.npz", "npy", SET("kind", "auto")},
    {'c', "table.csv", "table", SET("test_fraction", "0", "categorical", "[town]")},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static int accepted[KINDS];

static void
hold(bool holds)
{
    if (!holds)
        abort();
}

static bool
is_a_sentence(const char *message)
{
    return message[0] && !strchr(message, '\n');
}

static void
read_one(const struct et_dataset *set, int64_t at)
{
    struct eti_room room = {0};
    struct et_sample s;
    struct et_error why = {0};
    bool broken;
    if (set->type->tokens)
        return;
    if (eti_sample_read(set, at, NULL, &room, &s, &why, &broken) != ET_OK)
        hold(is_a_sentence(why.message));
    eti_room_free(&room);
}

static void
open_one(struct et_ctx *cx, int number, const char *path)
{
    const struct kind *k = &kinds[number];
    const struct et_dataset_class *c = et_dataset_find(k->name);
    struct et_dataset *set = NULL;
    void *options;
    need(cx, et_options_new(cx, &c->info, k->set, &options));
    need(cx, et_options_set(cx, c->info.options, options, "path", path));
    et_status status = et_dataset_open(cx, c, options, &set);
    if (status == ET_OK) {
        accepted[number]++;
        hold(set->facts.n_samples > 0);
        read_one(set, 0);
        read_one(set, set->facts.n_samples - 1);
    } else {
        hold(is_a_sentence(et_error_get(cx)->message));
    }
    et_error_clear(cx);
    et_dataset_close(&set);
    et_options_free(&c->info, &options);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    int number = 0;
    while (size > 0 && number < KINDS && kinds[number].letter != data[0])
        number++;
    if (size == 0 || number == KINDS || et_ctx_new(&cx) != ET_OK)
        return 0;
    open_one(cx, number, write_file(kinds[number].file, data + 1, size - 1, false));
    et_alloc_get_stats(cx, &stats);
    hold(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("sets-seeds", "\t,\"{}[]:\\ \n0P\1\2");
    for (int i = 0; i < KINDS; i++)
        ok(accepted[i] > 1, "some damaged copies are still %s for %s (%d)",
           kinds[i].file, kinds[i].name, accepted[i]);
    return done();
}
#endif
