/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_tracker.c: what the model makes of the same samples at each evaluation, so
 * that a person sees when it learns which.
 *
 *     predictions/LABEL.track.jsonl   a line for each evaluation (library/tracked.h)
 *     predictions/LABEL.track.ppm     the samples' pictures, once
 *
 * The samples are the first of the data, whose order is the same at each evaluation:
 * with several ranks too, which give theirs to rank 0. Answers are a class for each
 * sample or for each of its pixels; of other models nothing is kept, which is said
 * once. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/callbacks/callbacks.h"
#include "core/library/tracked.h"
#include "core/trainer/gather.h"

struct options {
    int64_t num_samples;
};

static const struct et_option option_table[] = {
    {
        .name = "num_samples",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_samples),
        .def = "8",
        .min = 1,
        .max = ETI_TRACKED_MOST,
        .help = "the first of each evaluation, or as many as a batch has",
    },
    {.name = NULL},
};

enum { PATH_BYTES = 4096 };
enum { IMAGES, OUTPUTS, TARGET, LEAVES };

struct tracker {
    struct et_tensor *leaf[LEAVES]; /* f32 [n,C,H,W]; f32 scores; i32 */
    bool taken[LEAVES];             /* will be there at the batch's end */
    bool is_quiet;                  /* it cannot be done, and that was said */
};

/* ---- taking ---- */

static et_status
take(struct et_callback *self, const struct et_state *s, int which, struct et_tensor *x)
{
    struct tracker *v = self->state;
    struct et_tensor *leaf = v->leaf[which];
    if (!x)
        return et_graph_status(s->graph);
    if (!leaf || !et_desc_same_shape(&leaf->desc, &x->desc)) {
        et_tensor_free(&v->leaf[which]);
        ET_TRY(et_tensor_new(self->cx, s->dev, x->desc.dtype, x->desc.ndim,
                             x->desc.shape, ET_ROW_MAJOR, "prediction_tracker",
                             &v->leaf[which]));
    }
    et_assign(s->graph, v->leaf[which], x);
    v->taken[which] = true;
    return et_graph_status(s->graph);
}

static struct et_tensor *
first_rows(const struct et_state *s, struct et_tensor *x, int64_t n, enum et_dtype type)
{
    int64_t rows = x->desc.shape[0] < n ? x->desc.shape[0] : n;
    return et_cast(s->graph, et_slice(s->graph, x, 0, 0, rows, 1), type);
}

/* Are OUTPUTS scores of classes, of samples or of their pixels, and TARGET the right
 * ones? */
static bool
fits(const struct et_tensor *outputs, const struct et_tensor *target)
{
    const int axes = outputs ? outputs->desc.ndim : 0;
    return (axes == 2 || axes == 4) && target && target->desc.dtype == ET_I32 &&
           target->desc.ndim == axes - 1;
}

static et_status
take_all(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct tracker *v = self->state;
    struct et_tensor *x = s->batch.x, *y = s->outputs, *target = s->batch.target;
    if (v->is_quiet || s->eval_timestamp.batch > 0 || s->batch.first_row > 0)
        return ET_OK;
    memset(v->taken, 0, sizeof v->taken);
    if (!fits(y, target)) {
        et_report(self->cx, ET_LOG_WARN,
                  "prediction_tracker: the model gives neither samples nor their "
                  "pixels a class: nothing is kept");
        v->is_quiet = true;
        return ET_OK;
    }
    if (x && x->desc.ndim == 4)
        ET_TRY(take(self, s, IMAGES, first_rows(s, x, o->num_samples, ET_F32)));
    ET_TRY(take(self, s, OUTPUTS, first_rows(s, y, o->num_samples, ET_F32)));
    return take(self, s, TARGET, first_rows(s, target, o->num_samples, ET_I32));
}

/* ---- writing ---- */

/* What was taken, on the host; nothing where it was not. */
static et_status
read_leaf(struct et_callback *self, int which, struct eti_rows_of *out)
{
    const struct tracker *v = self->state;
    *out = (struct eti_rows_of){0};
    if (!v->taken[which])
        return ET_OK;
    out->desc = v->leaf[which]->desc;
    ET_TRY(et_alloc(self->cx, et_desc_bytes(&out->desc), &out->data));
    return et_tensor_read(self->cx, v->leaf[which], out->data,
                          et_desc_bytes(&out->desc));
}

/* The first rows of all ranks, as of one. */
static et_status
read_rows(struct et_callback *self, const struct et_state *s, int which,
          struct eti_rows_of *out)
{
    const struct options *o = self->options;
    struct eti_rows_of own;
    ET_TRY(read_leaf(self, which, out));
    if (!s->comm)
        return ET_OK;
    own = *out;
    int64_t n = own.data ? own.desc.shape[0] : 0;
    et_status status =
        eti_gather_rows(self->cx, s->comm, own.data, n, &own.desc, 0, out);
    et_free(self->cx, own.data);
    if (out->desc.ndim > 0 && out->desc.shape[0] > o->num_samples)
        out->desc.shape[0] = o->num_samples;
    return status;
}

static et_status
write_rows(struct et_callback *self, const struct et_state *s,
           const struct eti_rows_of *rows)
{
    char folder[PATH_BYTES];
    if (snprintf(folder, sizeof folder, "%s/predictions", self->run_directory) >=
        (int)sizeof folder)
        return ET_FAIL(self->cx, ET_EINVAL, "a path is too long");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", folder, strerror(errno));
    const struct et_data_facts *f = s->train_set ? &s->train_set->facts : NULL;
    const struct eti_tracked_batch b = {
        .outputs = rows[OUTPUTS].data,
        .desc = rows[OUTPUTS].desc,
        .target = rows[TARGET].data,
        .image = rows[IMAGES].data,
        .image_desc = rows[IMAGES].desc,
        .epoch = s->timestamp.epoch,
        .batch = s->timestamp.batch,
        .names = f ? f->class_names : NULL,
        .n_names = f && f->class_names ? et_facts_classes(f) : 0,
    };
    return eti_tracked_write(self->cx, folder, s->dataloader_label, &b);
}

/* All ranks take part, whatever they have; rank 0 writes. */
static et_status
write_all(struct et_callback *self, const struct et_state *s, et_status *written)
{
    struct eti_rows_of rows[LEAVES] = {{.data = NULL}};
    et_status status = ET_OK;
    for (int i = 0; i < LEAVES && status == ET_OK; i++)
        status = read_rows(self, s, i, &rows[i]);
    if (status == ET_OK && s->rank == 0 && rows[OUTPUTS].data && rows[TARGET].data &&
        rows[OUTPUTS].desc.ndim > 0)
        *written = write_rows(self, s, rows);
    for (int i = 0; i < LEAVES; i++)
        eti_gathered_free(self->cx, &rows[i]);
    return status;
}

/* What cannot be written is missed; the first is warned about. */
static et_status
end_batch(struct et_callback *self, const struct et_state *s)
{
    struct tracker *v = self->state;
    et_status written = ET_OK;
    if (s->comm ? s->eval_timestamp.batch != 1 : !v->taken[OUTPUTS])
        return ET_OK;
    et_status status = write_all(self, s, &written);
    memset(v->taken, 0, sizeof v->taken);
    if (status != ET_OK || written == ET_OK || written == ET_ENOMEM)
        return status != ET_OK ? status : written;
    et_report(self->cx, ET_LOG_WARN, "prediction_tracker: %s",
              et_error_get(self->cx)->message);
    et_error_clear(self->cx);
    v->is_quiet = true;
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    (void)log;
    if (event == ET_EVENT_EVAL_AFTER_FORWARD)
        return take_all(self, s);
    if (event == ET_EVENT_EVAL_BATCH_END)
        return end_batch(self, s);
    if (!self->run_directory && s->rank == 0)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "prediction_tracker writes into the run's directory, and this "
                       "run has none");
    return ET_OK;
}

static void
release(struct et_callback *self)
{
    struct tracker *v = self->state;
    for (int i = 0; i < LEAVES; i++)
        et_tensor_free(&v->leaf[i]);
}

const struct et_callback_class et_callback_prediction_tracker = {
    .info =
        {
            .name = "prediction_tracker",
            .class_name = "PredictionTracker",
            .summary = "what the model makes of the same samples at each evaluation",
            .source = "Weights & Biases, WandbEvalCallback",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct tracker),
    .events = ET_ON(INIT) | ET_ON(EVAL_AFTER_FORWARD) | ET_ON(EVAL_BATCH_END),
    .acts = true, /* on every rank, as each has a part of the samples */
    .run = run,
    .close = release,
};
