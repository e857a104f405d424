/* SPDX-License-Identifier: Apache-2.0 */
/* export.c: see export.h; all but the chart, which is in chart.c. */
#include "config.h"

#include "core/journal/export.h"

#include <errno.h>
#include <glob.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/loggers/tfevents.h"

/* ---- one history ---- */

static et_status
add_again(struct eti_history *h, int64_t seq, int64_t ba)
{
    ET_TRY(eti_grow(h->cx, &h->again, &h->room, h->n + 1, sizeof *h->again));
    h->again[h->n++] = (struct eti_again){seq, ba};
    return ET_OK;
}

/* Notes down where the run was resumed. Each resume stands for all later ones too, so
 * that one comparison will do: its BA is the least of theirs. */
static et_status
find_resumes(struct eti_history *h, const char *path)
{
    struct et_events *e;
    struct et_record r;
    bool got = true;
    ET_TRY(et_events_open(h->cx, path, &e));
    et_status status = et_events_only(e, UINT64_C(1) << ET_RECORD_RESUME);
    while (status == ET_OK && got) {
        status = et_events_next(e, &r, &got);
        if (status == ET_OK && got)
            status = add_again(h, r.seq, r.ba);
    }
    et_events_close(&e);
    for (int i = h->n - 2; i >= 0; i--)
        if (h->again[i].ba > h->again[i + 1].ba)
            h->again[i].ba = h->again[i + 1].ba;
    return status;
}

et_status
eti_history_open(struct et_ctx *cx, const struct eti_export *x, struct eti_history *h)
{
    *h = (struct eti_history){.cx = cx, .metrics = x->metrics};
    ET_TRY(find_resumes(h, x->events));
    return et_events_open(cx, x->events, &h->events);
}

void
eti_history_close(struct eti_history *h)
{
    et_events_close(&h->events);
    et_free(h->cx, h->again);
    et_free(h->cx, h->entry);
    et_free(h->cx, h->span);
}

/* Keeps the numbers that are wanted. */
static et_status
select_numbers(struct eti_history *h, struct et_record *r)
{
    int n = 0;
    if (r->n > h->entry_room) {
        void *block, *span;
        ET_TRY(et_alloc(h->cx, 2 * (size_t)r->n * sizeof *h->entry, &block));
        et_free(h->cx, h->entry);
        h->entry = block;
        h->entry_room = 0;
        ET_TRY(et_alloc(h->cx, 2 * (size_t)r->n * sizeof *h->span, &span));
        et_free(h->cx, h->span);
        h->span = span;
        h->entry_room = 2 * r->n;
    }
    for (int i = 0; i < r->n; i++)
        if (!h->metrics || regexec(h->metrics, r->entry[i].name, 0, NULL, 0) == 0) {
            if (r->span)
                h->span[n] = r->span[i];
            h->entry[n++] = r->entry[i];
        }
    r->entry = h->entry;
    r->span = r->span ? h->span : NULL;
    r->n = n;
    return ET_OK;
}

et_status
eti_history_next(struct eti_history *h, struct et_record *out, bool *got)
{
    for (;;) {
        ET_TRY(et_events_next(h->events, out, got));
        if (!*got)
            return ET_OK;
        if (out->kind == ET_RECORD_ANNOTATION) /* said once, whatever was done again */
            return ET_OK;
        while (h->next < h->n && h->again[h->next].seq <= out->seq)
            h->next++;
        if (h->next < h->n && out->ba > h->again[h->next].ba)
            continue;
        if (out->kind != ET_RECORD_BATCH && out->kind != ET_RECORD_EPOCH &&
            out->kind != ET_RECORD_EVAL)
            continue;
        ET_TRY(select_numbers(h, out));
        if (out->n > 0)
            return ET_OK;
    }
}

/* ---- lines ---- */

static et_status
export_lines(struct et_ctx *cx, const struct eti_export *x, FILE *out,
             void (*put)(FILE *f, const struct et_record *r))
{
    struct eti_history h;
    struct et_record r;
    bool got = true;
    et_status status = eti_history_open(cx, x, &h);
    while (status == ET_OK && got) {
        status = eti_history_next(&h, &r, &got);
        if (status == ET_OK && got)
            put(out, &r);
    }
    eti_history_close(&h);
    if (status == ET_OK && (fflush(out) != 0 || ferror(out)))
        status = ET_FAIL(cx, ET_EIO, "cannot write: %s", strerror(errno));
    return status;
}

et_status
eti_export_jsonl(struct et_ctx *cx, const struct eti_export *x, FILE *out)
{
    return export_lines(cx, x, out, eti_jsonl_put);
}

et_status
eti_export_csv(struct et_ctx *cx, const struct eti_export *x, FILE *out)
{
    eti_csv_header(out);
    return export_lines(cx, x, out, eti_csv_put);
}

/* ---- TensorBoard ---- */

static void
put_event(struct eti_tfevents *w, const struct et_record *r)
{
    eti_tfevents_at(w, r->t, r->ba);
    for (int i = 0; i < r->n; i++)
        eti_tfevents_scalar(w, r->entry[i].name, r->entry[i].value);
    if (r->kind == ET_RECORD_ANNOTATION && r->text)
        eti_tfevents_text(w, "annotation", r->text);
}

/* Two files of one run would show it twice. */
static et_status
refuse_used(struct et_ctx *cx, const char *directory)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return ET_OK;
    globfree(&found);
    return ET_FAIL(cx, ET_EINVAL,
                   "%s has files of events already: name another with -o", directory);
}

et_status
eti_export_tensorboard(struct et_ctx *cx, const struct eti_export *x,
                       const char *directory)
{
    struct eti_tfevents w;
    struct eti_history h;
    struct et_record r;
    bool got = true, resumed;
    ET_TRY(refuse_used(cx, directory));
    et_status status = eti_history_open(cx, x, &h);
    if (status != ET_OK) {
        eti_history_close(&h);
        return status;
    }
    status = eti_tfevents_open(cx, directory, eti_wall(cx), &w, &resumed);
    while (status == ET_OK && got) {
        status = eti_history_next(&h, &r, &got);
        if (status == ET_OK && got)
            put_event(&w, &r);
    }
    eti_tfevents_close(&w);
    eti_history_close(&h);
    if (status == ET_OK && w.file.failed)
        status = ET_FAIL(cx, ET_EIO, "cannot write to %s", directory);
    return status;
}
