/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of MANIFEST; see replay.h. The input is what stands before the digest,
 * which is made right: nothing else would get past it.
 *
 * Whatever the bytes: no crash, nothing left allocated; what is accepted is accepted
 * again, the same, once written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint/manifest.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static void
check_again(struct et_ctx *cx, const struct eti_manifest *m)
{
    struct eti_manifest again;
    char *text;
    size_t n;
    need(eti_manifest_print(cx, m, &text, &n) == ET_OK);
    need(eti_manifest_parse(cx, "x", text, n, &again) == ET_OK);
    need(again.step == m->step && again.saved == m->saved &&
         again.n_files == m->n_files && strcmp(again.label, m->label) == 0 &&
         strcmp(again.file[0].digest, m->file[0].digest) == 0);
    eti_manifest_release(&again);
    et_free(cx, text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    struct eti_manifest m;
    struct et_alloc_stats stats;
    char digest[65], *text = malloc(size + 128);
    if (!text || et_ctx_new(&cx) != ET_OK)
        return 0;
    need(eti_manifest_parse(cx, "x", (const char *)data, size, &m) != ET_OK);
    need(et_error_get(cx)->message[0]);
    et_error_clear(cx);
    eti_manifest_release(&m);
    eti_digest_text(data, size, digest);
    if (size)
        memcpy(text, data, size);
    size_t tail =
        (size_t)snprintf(text + size, 128, ",\n  \"digest\": \"%s\"\n}\n", digest);
    if (eti_manifest_parse(cx, "x", text, size + tail, &m) == ET_OK) {
        accepted++;
        check_again(cx, &m);
    }
    eti_manifest_release(&m);
    free(text);
    et_alloc_get_stats(cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("manifest-seeds", "{}[]:,\"0123456789-.eE \\u");
    ok(accepted > 10, "some damaged copies are still MANIFESTs (%d)", accepted);
    return done();
}
#endif
