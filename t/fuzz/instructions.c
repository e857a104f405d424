/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the lines of JSON that ask and answer; see replay.h.
 *
 * Whatever the bytes: no crash, nothing left allocated, a refusal has one line with its
 * number; what is accepted is parts that lie end to end in the text, given and learned
 * ones in turn, the first of them given. */
#include <stdlib.h>
#include <string.h>

#include "core/data/instruction_rows.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static et_status
take(void *data, const struct eti_instruction *row)
{
    size_t at = 0;
    (void)data;
    need(row->n_parts > 0 && row->line > 0);
    for (int64_t i = 0; i < row->n_parts; i++) {
        need(row->part[i].at == at && row->part[i].is_learned == (i % 2 == 1));
        at += row->part[i].n;
    }
    accepted++;
    return ET_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct eti_instruction_form form = {"{prompt}{response}",
                                              "<{role}> {content}\n", "response"};
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    if (eti_instruction_lines(cx, "x", (const char *)data, size, &form, take, NULL) !=
        ET_OK) {
        const char *why = et_error_get(cx)->message;
        need(strncmp(why, "x:", 2) == 0 && !strchr(why, '\n'));
        et_error_clear(cx);
    }
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("instructions-seeds", "{}[]:,\"\\ \n\r0");
    ok(accepted > 10, "some damaged copies are still lines of that form (%d)",
       accepted);
    return done();
}
#endif
