/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what `etude predict` keeps in a run, and what screens read of it; see
 * replay.h. The input is a CSV, and behind a form feed the JSON beside it; all of it is
 * read as pictures and as tracked samples, too.
 *
 * Whatever the bytes: no crash, nothing left allocated; what is accepted can be
 * written, and is accepted again with as many samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library/predictions.h"
#include "core/library/tracked.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;
static char folder[] = "/tmp/etude-fuzz.XXXXXX";

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static const char *
write_file(const char *name, const void *data, size_t n)
{
    static char path[4][64];
    static int at;
    char *own = path[at++ % 4];
    snprintf(own, sizeof path[0], "%s/%s", folder, name);
    FILE *f = fopen(own, "wb");
    need(f != NULL);
    if (n > 0)
        need(fwrite(data, 1, n, f) == n);
    need(fclose(f) == 0);
    return own;
}

static void
check_again(struct et_ctx *cx, const struct eti_predictions *all)
{
    struct eti_predictions again;
    char path[64];
    snprintf(path, sizeof path, "%s/again.csv", folder);
    need(eti_predictions_keep(all, folder, "again") == ET_OK);
    need(eti_predictions_read(cx, path, &again) == ET_OK);
    need(again.n == all->n && again.answer == all->answer);
    eti_predictions_release(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct eti_predictions all;
    struct eti_sheet sheet;
    struct et_alloc_stats stats;
    const uint8_t *feed = size > 0 ? memchr(data, '\f', size) : NULL;
    const size_t n = feed ? (size_t)(feed - data) : size;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    static bool made; /* (The name that is drawn may have an X, too.) */
    if (!made)
        need(mkdtemp(folder) != NULL);
    made = true;
    write_file("p.json", feed ? feed + 1 : data, feed ? size - n - 1 : size);
    if (eti_predictions_read(cx, write_file("p.csv", data, n), &all) == ET_OK) {
        accepted++;
        check_again(cx, &all);
    } else {
        need(et_error_get(cx)->message[0]);
    }
    eti_predictions_release(&all);
    et_error_clear(cx);
    if (eti_sheet_read(cx, write_file("p.ppm", data, size), &sheet) == ET_OK)
        accepted++;
    eti_sheet_release(&sheet);
    et_error_clear(cx);
    json_decref(eti_tracked_read(write_file("p.track.jsonl", data, size)));
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    char command[80];
    fuzz_replay("predictions-seeds", "{}[]:,\"0123456789-.e \n\f");
    ok(accepted > 10, "some damaged copies are still predictions (%d)", accepted);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (system(command) != 0)
        diag("%s stays", folder);
    return done();
}
#endif
