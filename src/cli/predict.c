/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c: `etude predict`: what a model makes of each sample of its eval_data. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/library/predictions.h"
#include "core/trainer/state.h"

struct taken {
    struct cli *c;
    struct eti_predictions all;
    struct eti_sheet sheet;
    float *picture; /* of a batch, on the host; grows */
    size_t bytes;
};

/* The images of the batch as [N][H][W][C] in T->picture; false: it has none that can be
 * shown. */
static bool
read_pictures(struct taken *t, const struct et_batch *b, struct et_desc *d)
{
    const struct et_batch_field *x = &b->field[ET_FIELD_X];
    void *block;
    *d = x->desc;
    const size_t bytes = et_desc_bytes(d);
    if (b->fields[ET_FIELD_X].kind != ET_FIELD_IMAGE || d->dtype != ET_F32 ||
        (!x->host.f32 && !x->tensor))
        return false;
    if (t->bytes < bytes) {
        if (et_alloc(t->c->cx, bytes, &block) != ET_OK)
            return false;
        et_free(t->c->cx, t->picture);
        t->picture = block;
        t->bytes = bytes;
    }
    if (x->host.f32) { /* as the loader left it: channels are last */
        memcpy(t->picture, x->host.f32, bytes);
        return true;
    }
    if (et_alloc(t->c->cx, bytes, &block) != ET_OK)
        return false;
    float *from = block;
    const bool is_read = et_tensor_read(t->c->cx, x->tensor, from, bytes) == ET_OK;
    const int64_t C = d->shape[1], area = d->shape[2] * d->shape[3];
    for (int64_t n = 0; n < d->shape[0] && is_read; n++)
        for (int64_t k = 0; k < C; k++)
            for (int64_t i = 0; i < area; i++)
                t->picture[(n * area + i) * C + k] = from[(n * C + k) * area + i];
    et_free(t->c->cx, from);
    return is_read;
}

/* The pictures of those of the batch, from sample FROM on, that are wrong and worst. */
static et_status
keep_pictures(struct taken *t, const struct et_batch *b, int64_t from)
{
    const struct eti_predictions *all = &t->all;
    struct et_desc d;
    bool any = false;
    for (int64_t i = from; i < all->n; i++)
        any = any || (all->class[i] != all->label[i] &&
                      eti_sheet_wants(&t->sheet, all->loss[i]));
    if (!any)
        return ET_OK;
    if (!read_pictures(t, b, &d)) {
        et_error_clear(t->c->cx); /* the numbers do without */
        return ET_OK;
    }
    const int64_t each = d.shape[1] * d.shape[2] * d.shape[3];
    for (int64_t i = from; i < all->n; i++)
        if (all->class[i] != all->label[i])
            ET_TRY(eti_sheet_add(&t->sheet, i, all->loss[i],
                                 t->picture + (i - from) * each, (int)d.shape[1],
                                 (int)d.shape[2], (int)d.shape[3]));
    return ET_OK;
}

/* The N labels of the batch; data without any have some that count nothing. The caller
 * frees *OUT. */
static et_status
read_labels(const struct et_state *s, const struct et_batch *b, int64_t n,
            int32_t **out)
{
    const struct et_batch_field *target = &b->field[ET_FIELD_TARGET];
    const size_t bytes = (size_t)n * sizeof **out;
    void *block;
    if (b->n_fields > ET_FIELD_TARGET &&
        (target->desc.ndim != 1 || target->desc.dtype != ET_I32))
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "predict is for data whose samples have one class each");
    ET_TRY(et_alloc(s->cx, bytes, &block));
    *out = block;
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = ET_IGNORE_INDEX;
    if (b->n_fields <= ET_FIELD_TARGET)
        return ET_OK;
    if (target->host.i32) {
        memcpy(block, target->host.i32, bytes);
        return ET_OK;
    }
    et_status status = et_tensor_read(s->cx, target->tensor, block, bytes);
    if (status != ET_OK)
        et_free(s->cx, block);
    return status;
}

static et_status
take(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct taken *t = data;
    const int64_t from = t->all.n, n = p->desc.shape[0];
    if (p->desc.ndim != 2)
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "predict is for models that give each sample a class; this one "
                       "gives %d axes",
                       p->desc.ndim);
    int32_t *label = NULL;
    ET_TRY(read_labels(s, p->batch, n, &label));
    et_status status =
        eti_predictions_add(&t->all, p->outputs, label, n, (int)p->desc.shape[1]);
    et_free(s->cx, label);
    return status == ET_OK ? keep_pictures(t, p->batch, from) : status;
}

/* ---- what is written ---- */

/* RUN/predictions/LABEL with ENDING. */
static int
place(struct cli *c, const char *directory, const char *label, const char *ending,
      char *path, size_t size)
{
    snprintf(path, size, "%s/predictions", directory);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot make %s: %s", path,
                        strerror(errno));
    if ((size_t)snprintf(path, size, "%s/predictions/%s.%s", directory, label,
                         ending) >= size)
        return cli_fail(c, CLI_E_WRITE, NULL, "the path of predictions is too long");
    return CLI_OK;
}

static int
write_all(struct cli *c, const struct taken *t, const struct eti_origin_run *from,
          const char *label)
{
    char path[PATH_MAX + 64];
    enum eti_predictions_as as = ETI_AS_CSV;
    if (c->opt.output) {
        (void)eti_predictions_format(c->opt.output, &as);
        et_status status = eti_predictions_write(&t->all, c->opt.output, as);
        return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    }
    int code = place(c, from->directory, label, "csv", path, sizeof path);
    if (code != CLI_OK)
        return code;
    et_status status = eti_predictions_write(&t->all, path, as);
    if (status == ET_OK)
        code = place(c, from->directory, label, "ppm", path, sizeof path);
    if (status == ET_OK && code == CLI_OK)
        status = eti_sheet_write(&t->sheet, path);
    return status == ET_OK ? code : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static int
say(struct cli *c, const struct eti_predictions *all, const char *label,
    const struct eti_origin_run *from)
{
    int64_t right = 0, known = 0;
    double loss = 0;
    for (int64_t i = 0; i < all->n; i++)
        if (all->label[i] >= 0) {
            known++;
            right += all->class[i] == all->label[i];
            loss += (double)all->loss[i];
        }
    const double n = known > 0 ? (double)known : 1;
    if (c->opt.json)
        return cli_print_json(json_pack("{s:s, s:I, s:i, s:f, s:f, s:s?}", "data",
                                        label, "samples", (json_int_t)all->n, "classes",
                                        all->classes, "accuracy", (double)right / n,
                                        "loss", loss / n, "file", c->opt.output));
    et_print(stdout, "%s: %" PRId64 " samples, %" PRId64 " right (%.4f), loss %.6g\n",
             label, all->n, right, (double)right / n, loss / n);
    if (c->opt.output)
        et_print(stdout, "written to %s\n", c->opt.output);
    else
        et_print(stdout, "written to %s/predictions/%s.csv\n", from->directory, label);
    return CLI_OK;
}

static const struct et_evaluator *
find_data(const struct eti_assembly *a, const char *wanted)
{
    for (int i = 0; i < a->config.n_evaluators; i++)
        if (!wanted || strcmp(a->evaluator[i].label, wanted) == 0)
            return &a->evaluator[i];
    return NULL;
}

static int
predict(struct cli *c, struct eti_assembly *a, const struct eti_origin_run *from,
        void *wanted) /* the label of the data; NULL: the first */
{
    struct taken t = {.c = c, .all.cx = c->cx, .sheet.cx = c->cx};
    struct et_trainer *trainer;
    const struct et_evaluator *data = find_data(a, wanted);
    if (!data)
        return cli_fail(c, CLI_E_OPERAND, NULL, "the recipe has no eval_data '%s'",
                        (const char *)wanted);
    if (!c->opt.output && !from->directory[0])
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "without a run to keep it in, predict needs -o FILE");
    et_status status = et_trainer_new(c->cx, &a->config, &trainer);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    status = et_trainer_predict(trainer, data->loader, take, &t);
    int code = status == ET_OK ? write_all(c, &t, from, data->label)
                               : cli_fail_status(c, ETI_STAGE_RUN, status);
    if (code == CLI_OK)
        code = say(c, &t.all, data->label, from);
    et_trainer_free(&trainer);
    eti_predictions_release(&t.all);
    eti_sheet_release(&t.sheet);
    et_free(c->cx, t.picture);
    return code;
}

int
cli_predict(struct cli *c)
{
    enum eti_predictions_as as;
    const char *wanted = c->n_args > 1 ? c->arg[1] : NULL;
    if (c->n_args > 2)
        return cli_fail(c, CLI_E_OPERAND, NULL, "predict has one operand too many: %s",
                        c->arg[2]);
    if (c->opt.output && !eti_predictions_format(c->opt.output, &as))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "-o %s: the name must end with .csv, .jsonl or .npz",
                        c->opt.output);
    if (c->n_args > 1)
        c->n_args = 1;
    return cli_use(c, predict, (void *)wanted);
}
