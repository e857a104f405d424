/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what comes over the wire; see replay.h. The input is one message.
 *
 * Whatever the bytes: no crash, nothing read beyond them, nothing left allocated, and
 * no more numbers of a record than are allowed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "dist/wire/wire.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

/* Reads all that is in a value. */
static int64_t
walk(const struct etd_value *v, const unsigned char *end, int depth)
{
    struct etd_value inside;
    const unsigned char *at = v->type == ETD_IS_MAP ? v->map.at : v->at;
    size_t n = v->type == ETD_IS_MAP    ? 2 * (size_t)v->map.n
               : v->type == ETD_IS_LIST ? v->n
                                        : 0;
    int64_t sum = v->i;
    need(depth <= ETD_DEPTH);
    for (size_t i = 0; (v->type == ETD_IS_TEXT || v->type == ETD_IS_BIN) && i < v->n;
         i++)
        sum += v->bytes[i];
    for (size_t i = 0; i < n; i++) {
        etd_next(&at, end, &inside);
        need(at <= end);
        sum += walk(&inside, end, depth + 1);
    }
    return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_join join;
    struct et_record r;
    struct etd_command command;
    struct etd_answer answer;
    struct et_alloc_stats stats;
    double numbers[16];
    int64_t ints[16];
    char text[64];
    bool whole;
    need(et_ctx_new(&cx) == ET_OK);
    if (etd_read(data, size, &f, &fault) == ET_OK) {
        struct etd_value all = {.type = ETD_IS_MAP, .map = f.body};
        accepted++;
        need(f.body.n <= ETD_KEYS && f.body.end == data + size);
        (void)walk(&all, data + size, 1);
        need(etd_get_doubles(&f.body, "v", numbers, 16) <= 16);
        need(etd_get_ints(&f.body, "ba", ints, 16) <= 16);
        need(strlen(etd_get_text(&f.body, "text", text, sizeof text)) < sizeof text);
        (void)etd_command_read(&f, &command);
        need(strlen(command.key) < ETD_WORD && strlen(command.value) < ETD_WORD);
        (void)etd_answer_read(&f, &answer);
        etd_join_init(&join, cx);
        for (int i = 0; i < 3; i++)
            if (etd_join_add(&join, &f, &r, &whole) == ET_OK)
                need(join.n <= ETD_RECORD_NUMBERS && (!whole || r.n == join.n));
        etd_join_release(&join);
    } else {
        need(fault.at <= size && fault.why);
    }
    et_error_clear(cx);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("wire-seeds",
                "\x91\x9a\x81\x80\xc4\xc6\xcb\xcf\xd9\xdb\xdc\xdd\xde\xdf");
    ok(accepted > 0, "some of them are frames");
    return done();
}
#endif
