/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c: `etude predict`: what a model makes of each sample of its eval_data. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/predict.h"
#include "core/data/loader_impl.h"

/* ---- what is written ---- */

/* RUN/predictions, which is made. */
static int
place(struct cli *c, const char *directory, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/predictions", directory) >= size)
        return cli_fail(c, CLI_E_WRITE, NULL, "the path of predictions is too long");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot make %s: %s", path,
                        strerror(errno));
    return CLI_OK;
}

/* For the screen Results. */
static int
keep(struct cli *c, const struct cli_taken *t, const struct eti_origin_run *from,
     const char *label)
{
    char folder[PATH_MAX], path[PATH_MAX + 80];
    int code = place(c, from->directory, folder, sizeof folder);
    if (code != CLI_OK)
        return code;
    snprintf(path, sizeof path, "%s/%.64s.ppm", folder, label);
    et_status status = eti_sheet_write(&t->sheet, path);
    if (status == ET_OK)
        status = eti_predictions_keep(&t->all, folder, label);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static int
write_all(struct cli *c, struct cli_taken *t, const struct eti_origin_run *from,
          const char *label)
{
    enum eti_predictions_as as = ETI_AS_CSV;
    et_status status;
    if (!c->opt.output)
        return keep(c, t, from, label);
    (void)eti_predictions_format(c->opt.output, &as);
    if (eti_detail_has(t->all.answer, as))
        status = eti_detail_write(&t->detail, &t->all);
    else if (as == ETI_AS_FOLDER)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "-o %s: a folder is for masks; these answers are %s",
                        c->opt.output, eti_answer_names[t->all.answer]);
    else
        status = eti_predictions_write(&t->all, c->opt.output, as);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static void
print_sum(const struct eti_predictions *all, const struct eti_predictions_sum *sum,
          const char *label)
{
    const double n = sum->counted > 0 ? (double)sum->counted : 1;
    const double share = (double)sum->right / n;
    et_print(stdout, "%s: %" PRId64 " samples, ", label, all->n);
    switch (all->answer) {
    case ETI_ANSWER_MASK:
        et_print(stdout, "%.4f of %" PRId64 " pixels right, mean IoU %.4f", share,
                 sum->counted, sum->mean_iou);
        break;
    case ETI_ANSWER_TOKENS:
        et_print(stdout, "%" PRId64 " of %" PRId64 " tokens right (%.4f)", sum->right,
                 sum->counted, share);
        break;
    case ETI_ANSWER_VALUES:
        et_print(stdout, "off by %.6g in the mean, R2 %.4f", sum->mae, sum->r2);
        break;
    default:
        et_print(stdout, "%" PRId64 " right (%.4f)", sum->right, share);
        break;
    }
    et_print(stdout, ", loss %.6g\n", sum->loss);
}

/* The IoU of each class, as it is called. */
static void
print_classes(const struct eti_predictions *all)
{
    char name[80];
    for (int k = 0; k < all->classes && all->answer == ETI_ANSWER_MASK; k++) {
        const double iou = eti_predictions_iou(all, k);
        if (!isnan(iou))
            et_print(stdout, "  IoU %.4f  %s\n", iou,
                     eti_predictions_name(all, k, name, sizeof name));
    }
}

static int
say(struct cli *c, const struct eti_predictions *all, const char *label,
    const struct eti_origin_run *from)
{
    struct eti_predictions_sum sum;
    eti_predictions_sum(all, &sum);
    if (c->opt.json) {
        json_t *json = eti_predictions_json(all, label);
        json_object_del(json, "worst");
        if (c->opt.output)
            json_object_set_new(json, "file", json_string(c->opt.output));
        return cli_print_json(json);
    }
    print_sum(all, &sum, label);
    print_classes(all);
    if (c->opt.output)
        et_print(stdout, "written to %s\n", c->opt.output);
    else
        et_print(stdout, "written to %s/predictions/%s.csv\n", from->directory, label);
    return CLI_OK;
}

/* ---- the data ---- */

static et_status
take_all(struct et_trainer *trainer, const struct et_evaluator *data,
         struct cli_taken *t)
{
    const struct et_data_facts *facts = &data->loader->data->facts;
    ET_TRY(et_trainer_predict(trainer, data->loader, cli_take_batch, t));
    return eti_predictions_set_names(&t->all, facts->class_names,
                                     (int)et_facts_classes(facts));
}

static int
predict_one(struct cli *c, struct et_trainer *trainer, const struct et_evaluator *data,
            const struct eti_origin_run *from)
{
    struct cli_taken t = {.cx = c->cx};
    t.all.cx = t.sheet.cx = t.detail.cx = c->cx;
    if (c->opt.output && eti_predictions_format(c->opt.output, &t.detail.as))
        t.detail.path = t.detail.as == ETI_AS_CSV ? NULL : c->opt.output;
    const bool first = et_comm_rank(c->comm) == 0; /* it gets what all have computed */
    et_status status = take_all(trainer, data, &t);
    int code = CLI_OK;
    if (status != ET_OK)
        code = cli_fail_status(c, ETI_STAGE_RUN, status);
    else if (first)
        code = write_all(c, &t, from, data->label);
    if (code == CLI_OK && first)
        code = say(c, &t.all, data->label, from);
    cli_taken_release(&t);
    return code;
}

/* Of data that are not WANTED none, where that is not NULL. A file takes the first. */
static int
predict(struct cli *c, struct eti_assembly *a, const struct eti_origin_run *from,
        void *wanted)
{
    struct et_trainer *trainer = NULL;
    int code = CLI_OK, done = 0;
    if (!c->opt.output && !from->directory[0])
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "without a run to keep it in, predict needs -o FILE");
    for (int i = 0; i < a->config.n_evaluators && code == CLI_OK; i++) {
        if ((wanted && strcmp(a->evaluator[i].label, wanted) != 0) ||
            (done > 0 && c->opt.output))
            continue;
        et_status status =
            trainer ? ET_OK : et_trainer_new(c->cx, &a->config, &trainer);
        code = status == ET_OK ? predict_one(c, trainer, &a->evaluator[i], from)
                               : cli_fail_status(c, ETI_STAGE_PARTS, status);
        done++;
    }
    et_trainer_free(&trainer);
    if (done == 0 && !wanted)
        return cli_fail(c, CLI_E_OPERAND,
                        "add eval_data='{name: ..., batch_size: ...}'",
                        "the recipe has no eval_data");
    if (done == 0)
        return cli_fail(c, CLI_E_OPERAND, NULL, "the recipe has no eval_data '%s'",
                        (const char *)wanted);
    return code;
}

/* -o FOLDER, if it is there, is -o FOLDER/. */
static void
name_folder(struct cli *c, char *name, size_t size)
{
    struct stat is;
    const size_t n = c->opt.output ? strlen(c->opt.output) : 0;
    if (n == 0 || c->opt.output[n - 1] == '/' || n + 2 > size ||
        stat(c->opt.output, &is) != 0 || !S_ISDIR(is.st_mode))
        return;
    snprintf(name, size, "%s/", c->opt.output);
    c->opt.output = name;
}

int
cli_predict(struct cli *c)
{
    enum eti_predictions_as as;
    char folder[PATH_MAX];
    const char *wanted = c->n_args > 1 ? c->arg[1] : NULL;
    if (c->n_args > 2)
        return cli_fail(c, CLI_E_OPERAND, NULL, "predict has one operand too many: %s",
                        c->arg[2]);
    name_folder(c, folder, sizeof folder);
    if (c->opt.output && !eti_predictions_format(c->opt.output, &as))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "-o %s: the name must end with .csv, .jsonl or .npz, or with / "
                        "for a folder of masks",
                        c->opt.output);
    if (c->n_args > 1)
        c->n_args = 1;
    return cli_use(c, predict, (void *)wanted);
}
