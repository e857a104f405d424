/* SPDX-License-Identifier: Apache-2.0 */
/* seq_length_warmup.c: sequences begin short and grow with the run.
 *
 *     warm = trunc(steps duration), k = (max - min) div step_size, every = warm div k
 *     length = min(step_size (step div every) + min, max)
 * truncate: columns 0 .. length - 1 of each field; else all tokens in a row, in rows
 *     of length, without those left over
 *
 * Li et al. 2022, arXiv 2108.06084; MosaicML Composer; spec/algorithms.md 2.23.
 * Differs: no step on a blank batch comes first, since one that is short of memory is
 * repeated in smaller pieces anyway; duration 0 and equal lengths mean no warm-up
 * (D22). A length has a plan of its own, and never returns. */
#include "config.h"

#include <string.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"

struct seq_length_warmup_options {
    double duration;
    int64_t min_seq_length, max_seq_length, step_size;
    bool truncate, preserve_end_of_sequence;
};

et_status
et_seq_length(struct et_ctx *cx, int64_t step, int64_t steps, double duration,
              int64_t min_seq_length, int64_t max_seq_length, int64_t step_size,
              int64_t *length)
{
    ETI_NEED(cx, cx, length);
    int64_t warm = (int64_t)((double)steps * duration);
    *length = max_seq_length;
    if (min_seq_length < 1 || max_seq_length < min_seq_length || step_size < 1)
        return ET_FAIL(
            cx, ET_EINVAL,
            "seq_length_warmup needs 1 <= min_seq_length <= max_seq_length and "
            "step_size >= 1, not %lld, %lld and %lld",
            (long long)min_seq_length, (long long)max_seq_length, (long long)step_size);
    int64_t increments = (max_seq_length - min_seq_length) / step_size;
    if (duration <= 0 || max_seq_length == min_seq_length)
        return ET_OK;
    if (increments < 1 || warm < increments)
        return ET_FAIL(
            cx, ET_EINVAL,
            "seq_length_warmup: %lld tokens to %lld in steps of %lld are %lld "
            "increments, and duration %g of %lld batches has room for %lld; "
            "use another step_size or a longer duration",
            (long long)min_seq_length, (long long)max_seq_length, (long long)step_size,
            (long long)increments, duration, (long long)steps, (long long)warm);
    int64_t done = step / (warm / increments);
    if (done < increments + 1) /* or the product might be too large */
        *length = step_size * done + min_seq_length;
    if (*length > max_seq_length)
        *length = max_seq_length;
    return ET_OK;
}

/* ---- a batch ---- */

enum { MOST = ET_MAX_FIELDS + 2 };

/* The fields of BATCH that there are, with their names. */
struct list {
    struct et_tensor **at[MOST];
    const char *name[MOST];
    int n;
};

static void
add(struct list *l, struct et_tensor **at, const char *name)
{
    if (!*at)
        return;
    l->at[l->n] = at;
    l->name[l->n++] = name;
}

static struct list
list_fields(struct et_samples *batch)
{
    struct list l = {.n = 0};
    add(&l, &batch->x, "inputs");
    add(&l, &batch->target, "targets");
    for (int i = 0; i < batch->n_others; i++)
        add(&l, &batch->other[i].tensor, batch->other[i].name);
    return l;
}

/* ---- what of a row is kept ---- */

/* Where rows end, by their attention mask. */
struct ends {
    struct et_tensor *last;  /* I32 [N]: the place among the tokens of all rows; NULL:
                                nothing is moved */
    struct et_tensor *place; /* f32 [N,1]: where it goes, below the new length */
};

/* An end in front of the row's first token would be that of the row before. */
static et_status
check_ends(struct et_graph *g, struct et_tensor *last)
{
    double least;
    ET_TRY(et_item(g, et_amin(g, last, 0, false), &least));
    if (least >= 0)
        return ET_OK;
    return ET_FAIL(
        et_graph_ctx(g), ET_EINVAL,
        "seq_length_warmup: a sample's attention_mask is all 0, so that there "
        "is no end to preserve");
}

static et_status
find_ends(struct et_graph *g, const struct et_samples *batch, int64_t length,
          struct ends *e)
{
    struct et_tensor *mask = et_samples_find(batch, "attention_mask");
    if (!mask || mask->desc.ndim != 2)
        return ET_FAIL(et_graph_ctx(g), ET_EINVAL,
                       "seq_length_warmup: preserve_end_of_sequence needs a field "
                       "attention_mask [N,T], which these data do not have");
    const int64_t *n = mask->desc.shape;
    struct et_tensor *last =
        et_add_scalar(g, et_sum(g, et_cast(g, mask, ET_F32), 2, false), -1);
    ET_TRY(check_ends(g, last));
    struct et_tensor *begin = et_mul(g, et_iota(g, ET_I32, n[0]),
                                     et_fill(g, ET_I32, ET_SHAPE(1), (double)n[1]));
    e->last = et_add(g, begin, et_cast(g, last, ET_I32));
    e->place =
        et_reshape(g, et_clamp(g, last, 0, (double)(length - 1)), ET_SHAPE(n[0], 1));
    return et_graph_status(g);
}

/* The elements of X [N,T,...] at E->last, [N,1,...]. */
static struct et_tensor *
take_ends(struct et_graph *g, struct et_tensor *x, const struct ends *e)
{
    const struct et_desc *d = &x->desc;
    int64_t flat[ET_MAX_DIMS] = {d->shape[0] * d->shape[1]};
    int64_t column[ET_MAX_DIMS] = {d->shape[0], 1};
    for (int i = 2; i < d->ndim; i++)
        flat[i - 1] = column[i] = d->shape[i];
    x = et_reshape(g, x, d->ndim - 1, flat);
    return et_reshape(g, et_take(g, x, e->last, 0), d->ndim, column);
}

/* X [N,T,...] cut to LENGTH columns. */
static struct et_tensor *
cut(struct et_graph *g, struct et_tensor *x, int64_t length, const struct ends *e)
{
    struct et_tensor *y = et_slice(g, x, 1, 0, length, 1);
    if (!e->last)
        return y;
    int64_t columns[ET_MAX_DIMS] = {x->desc.shape[0], length};
    for (int i = 2; i < x->desc.ndim; i++)
        columns[i] = 1;
    struct et_tensor *elsewhere = et_sub(
        g, et_reshape(g, et_iota(g, ET_F32, length), ET_SHAPE(1, length)), e->place);
    elsewhere = et_reshape(g, elsewhere, x->desc.ndim, columns);
    /* A choice is between real numbers; tokens are whole ones below 2^24. */
    enum et_dtype dtype = x->desc.dtype,
                  real = et_dtype_is_float(dtype) ? dtype : ET_F32;
    y = et_where(g, elsewhere, et_cast(g, y, real),
                 et_cast(g, take_ends(g, x, e), real));
    return et_cast(g, y, dtype);
}

/* All of X in a row, in rows of LENGTH. */
static struct et_tensor *
segment(struct et_graph *g, struct et_tensor *x, int64_t length)
{
    int64_t all = et_desc_count(&x->desc), rows = all / length;
    x = et_slice(g, et_reshape(g, x, ET_SHAPE(all)), 0, 0, rows * length, 1);
    return et_reshape(g, x, ET_SHAPE(rows, length));
}

static et_status
check_field(struct et_ctx *cx, const struct et_samples *batch, const struct et_desc *d,
            const char *name, bool truncate)
{
    const struct et_desc *x = &batch->x->desc;
    if (d->ndim < 2)
        return ET_FAIL(cx, ET_EINVAL,
                       "seq_length_warmup: the %s of a batch have one number a sample, "
                       "which cannot be cut; all fields need a number for each token",
                       name);
    bool same = d->ndim == 2 && x->ndim == 2;
    for (int i = 0; i < 2 && same; i++)
        same = d->shape[i] == x->shape[i];
    if (truncate ? d->shape[1] == x->shape[1] : same)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "seq_length_warmup: the %s are [%lld,%lld%s], where the inputs are "
                   "[%lld,%lld%s]%s",
                   name, (long long)d->shape[0], (long long)d->shape[1],
                   d->ndim > 2 ? ",..." : "", (long long)x->shape[0],
                   (long long)x->shape[1], x->ndim > 2 ? ",..." : "",
                   truncate ? "" : "; truncate: false needs all fields alike");
}

et_status
et_set_batch_sequence_length(struct et_graph *g, struct et_samples *batch,
                             int64_t length, bool truncate,
                             bool preserve_end_of_sequence)
{
    struct et_ctx *cx = et_graph_ctx(g);
    struct ends ends = {0};
    ETI_NEED(cx, g, batch);
    ETI_NEED(cx, batch->x);
    struct list l = list_fields(batch);
    if (length < 1)
        return ET_FAIL(cx, ET_EINVAL, "seq_length_warmup: sequences of %lld tokens",
                       (long long)length);
    if (batch->x->desc.ndim >= 2 && length >= batch->x->desc.shape[1])
        return ET_OK;
    for (int i = 0; i < l.n; i++)
        ET_TRY(check_field(cx, batch, &(*l.at[i])->desc, l.name[i], truncate));
    if (truncate && preserve_end_of_sequence)
        ET_TRY(find_ends(g, batch, length, &ends));
    for (int i = 0; i < l.n; i++)
        *l.at[i] =
            truncate ? cut(g, *l.at[i], length, &ends) : segment(g, *l.at[i], length);
    ET_TRY(et_graph_status(g));
    batch->n = batch->x->desc.shape[0];
    return ET_OK;
}

/* ---- the algorithm ---- */

static et_status
check_model(const struct et_state *s)
{
    if (s->model->type->task == ET_TASK_LANGUAGE)
        return ET_OK;
    return ET_FAIL(
        s->cx, ET_EINVAL,
        "seq_length_warmup needs a language model, as gpt2 and bert are; this "
        "is %s",
        s->model->type->info.name);
}

static et_status
shorten(struct et_algorithm *self, struct et_state *s, struct et_log *log)
{
    const struct seq_length_warmup_options *o = self->options;
    int64_t steps, length;
    if (!s->batch.x)
        return et_graph_status(s->graph);
    ET_TRY(eti_total_steps(self, s, &steps));
    ET_TRY(et_seq_length(s->cx, s->timestamp.batch, steps, o->duration,
                         o->min_seq_length, o->max_seq_length, o->step_size, &length));
    ET_TRY(et_set_batch_sequence_length(s->graph, &s->batch, length, o->truncate,
                                        o->preserve_end_of_sequence));
    et_log_metric(log, "seq_length_warmup/curr_seq_len",
                  (double)s->batch.x->desc.shape[1]);
    et_log_metric(log, "seq_length_warmup/curr_bs", (double)s->batch.n);
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    return event == ET_EVENT_INIT ? check_model(s) : shorten(self, s, log);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct seq_length_warmup_options *o = options;
    if (o->max_seq_length >= o->min_seq_length)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "seq_length_warmup: max_seq_length %lld is less than min_seq_length "
                   "%lld",
                   (long long)o->max_seq_length, (long long)o->min_seq_length);
}

#define TOKENS(field, defaults, words)                                                 \
    ETI_ROW(INT, seq_length_warmup_options, field, defaults, 1, 1 << 24, 0, words)

static const struct et_option table[] = {
    ETI_ROW(FLOAT, seq_length_warmup_options, duration, "0.3", 0, 1, 0,
            "fraction of the run in which sequences grow"),
    TOKENS(min_seq_length, "8", "tokens of a sequence at the start"),
    TOKENS(max_seq_length, "1024", "tokens of a sequence from then on"),
    TOKENS(step_size, "8", "tokens that a sequence grows by at a time"),
    ETI_BOOL(seq_length_warmup_options, truncate, "true",
             "leave out what is too long, instead of making more sequences of it"),
    ETI_BOOL(seq_length_warmup_options, preserve_end_of_sequence, "false",
             "keep the last token of each sequence; needs an attention_mask"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_seq_length_warmup = {
    .info =
        {
            .name = "seq_length_warmup",
            .class_name = "SeqLengthWarmup",
            .summary = "begin with short sequences and grow them",
            .source = "Li et al. 2022, arXiv 2108.06084; MosaicML Composer",
            .applies_to = "text",
            .options = table,
            .options_size = sizeof(struct seq_length_warmup_options),
        },
    .events = ET_ON(INIT) | ET_ON(AFTER_DATALOADER),
    .flags = ET_ALG_PREPARES,
    .check = check,
    .apply = apply,
};
