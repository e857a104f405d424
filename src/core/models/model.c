/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: makes models, runs them, and reaches their parameters. See model.h. */
#include "etude/model.h"

#include <string.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/recipe/options.h"
#include "etude/nn.h"

#define ET_MODEL(name) extern const struct et_model_class et_##name##_model;
#include "core/models/models.def"
#undef ET_MODEL

const struct et_model_class *const et_model_classes[] = {
#define ET_MODEL(name) &et_##name##_model,
#include "core/models/models.def"
#undef ET_MODEL
    NULL,
};

const struct et_model_class *
et_model_class_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_model_class *const *c = et_model_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

const char *
et_model_beginning(const struct et_model_class *type)
{
    if (!type)
        return NULL;
    return type->beginning ? type->beginning
                           : "linear and convolution layers U(+-1/sqrt(fan_in)), norms "
                             "1 and 0, as PyTorch's layers";
}

static const struct {
    const char *train, *eval, *more;
} tasks[] = {
#define TASK_ROW(code, number, train, eval, more) [number] = {train, eval, more},
    ET_TASK_MAP(TASK_ROW)
#undef TASK_ROW
};

const char *
et_task_metrics(enum et_task task, bool training)
{
    return training ? tasks[task].train : tasks[task].eval;
}

const char *
et_task_more_metrics(enum et_task task)
{
    return tasks[task].more;
}

const struct et_option et_model_weights_options[] = {
    {
        .name = "path",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct et_model_weights, path),
        .flags = ET_OPT_OPTIONAL,
        .help = "file of weights, or folder of Hugging Face's, to start from",
    },
    {
        .name = "strict",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct et_model_weights, strict),
        .def = "true",
        .help = "refuse a file whose names and shapes are not the model's; false: what "
                "does not fit is left out and told",
    },
    {
        .name = "ignore",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct et_model_weights, ignore),
        .def = "[]",
        .help = "patterns such as 'fc.*' of tensors to leave out",
    },
    {0},
};

/* A recipe's number where it gives one, else the data's. */
static void
settle(int64_t option, int64_t *fact)
{
    if (option > 0)
        *fact = option;
}

/* The numbers to learn of a sample, where the data have such; else 0. */
static int64_t
count_numbers(const struct et_model_class *type, const struct et_model_facts *facts)
{
    const struct et_field *target =
        facts->n_fields > ET_FIELD_TARGET ? &facts->field[ET_FIELD_TARGET] : NULL;
    int64_t n = 1;
    if (type->task != ET_TASK_CLASSIFICATION || !target ||
        !et_dtype_is_float(target->dtype))
        return 0;
    for (int k = 0; k < target->ndim; k++)
        n *= target->shape[k];
    return n;
}

/* The option's, with its defaults; where the task or the data need another one, the
 * first that is for them. */
static et_status
choose_loss(struct et_ctx *cx, struct et_model *m, const struct et_model_options *o)
{
    const struct et_loss_class *c = et_loss_classes[o->loss];
    if (m->task == ET_TASK_LANGUAGE && o->loss == 0)
        c = et_loss_find("masked_language");
    else if (m->has_numbers && o->loss == 0)
        c = et_loss_find("mse");
    ET_TRY(et_options_new(cx, &c->info, NULL, &m->own_loss_options));
    m->own_loss = c;
    et_model_set_loss(m, c, m->own_loss_options);
    return ET_OK;
}

static et_status
make_model(struct et_ctx *cx, const struct et_model_class *type, const void *options,
           const struct et_model_facts *facts, struct et_model **out)
{
    struct et_model_facts settled = facts ? *facts : (struct et_model_facts){0};
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct et_model), &block));
    struct et_model *m = block;
    m->type = type;
    m->cx = cx;
    et_status status = eti_options_new(cx, &type->info, options, &m->options);
    if (status != ET_OK) {
        et_free(cx, m);
        return status;
    }
    const struct et_model_options *o = m->options;
    int64_t numbers = count_numbers(type, &settled);
    settle(numbers, &settled.num_classes);
    settle(o->num_classes, &settled.num_classes);
    settle(o->in_channels, &settled.channels);
    m->num_classes = settled.num_classes;
    m->facts = settled;
    m->facts.field = NULL; /* the caller's, who may drop them */
    m->facts.n_fields = 0;
    m->task = type->task;
    m->has_numbers = numbers > 0;
    status = choose_loss(cx, m, o);
    if (status == ET_OK && type->task != ET_TASK_LANGUAGE && settled.num_classes < 1)
        status = ET_FAIL(cx, ET_EINVAL, "%s needs num_classes; the data do not say it",
                         type->info.name);
    else if (status == ET_OK && type->task != ET_TASK_LANGUAGE && !type->reads_tokens &&
             settled.channels < 1)
        status = ET_FAIL(cx, ET_EINVAL, "%s needs in_channels; the data do not say it",
                         type->info.name);
    if (status == ET_OK)
        status = type->build(cx, m, m->options, &settled);
    for (const char *const *own = type->initializer; own && *own && status == ET_OK;
         own++)
        status = et_module_initializer(cx, m->root, *own);
    for (int i = 0; i < o->initializer.n && status == ET_OK; i++)
        status = et_module_initializer(cx, m->root, o->initializer.v[i]);
    if (status != ET_OK)
        et_model_free(&m);
    *out = m;
    return status;
}

et_status
et_model_new(struct et_ctx *cx, const struct et_model_class *type, const void *options,
             const struct et_model_facts *facts, struct et_model **out)
{
    ETI_NEED(cx, out);
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_model_new", type));
    ETI_NEED(cx, cx);
    return make_model(cx, type, options, facts, out);
}

void
et_model_free(struct et_model **mp)
{
    if (!mp)
        return;
    struct et_model *m = *mp;
    *mp = NULL;
    if (!m)
        return;
    et_module_free(&m->root);
    if (m->own_loss)
        et_options_free(&m->own_loss->info, &m->own_loss_options);
    eti_options_free(m->cx, &m->type->info, &m->options);
    et_free(m->cx, m);
}

struct et_tensor *
et_model_forward(struct et_model *m, struct et_forward *f, struct et_tensor *x)
{
    if (!m || !f)
        return NULL;
    bool was = et_autocast(f->g, true);
    struct et_tensor *y = et_forward(f, m->root, x);
    et_autocast(f->g, was);
    return y;
}

/* ---- parameters by name ---- */

static et_status
find_leaf(struct et_model *m, const char *name, struct et_param **out)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(m->cx, m->root, ET_PARAM | ET_BUFFER, &l));
    struct et_leaf *leaf = et_leaves_find(&l, name);
    *out = leaf ? leaf->param : NULL;
    et_leaves_release(&l);
    if (!*out)
        return ET_FAIL(m->cx, ET_ENOENT, "%s has no parameter %s", m->type->info.name,
                       name);
    return ET_OK;
}

et_status
et_model_get_param(struct et_model *m, const char *name, uint32_t seed, float *out,
                   int64_t count)
{
    ETI_NEED(m ? m->cx : NULL, m, name);
    struct et_param *p;
    ET_TRY(find_leaf(m, name, &p));
    return et_param_read(m->cx, p, name, seed, out, count);
}

et_status
et_model_set_param(struct et_model *m, const char *name, const float *values,
                   int64_t count)
{
    ETI_NEED(m ? m->cx : NULL, m, name);
    struct et_param *p;
    ET_TRY(find_leaf(m, name, &p));
    return et_param_write(m->cx, p, values, count);
}

et_status
et_model_flops(struct et_model *m, struct et_graph *g, struct et_tensor *x,
               int64_t *out)
{
    ETI_NEED(m ? m->cx : NULL, m, g, x, out);
    struct et_forward f = {.g = g};
    struct et_plan_info info;
    et_graph_reset(g);
    struct et_tensor *y = et_model_forward(m, &f, x);
    et_status status = et_plan(g, &y, 1, &info);
    if (status == ET_OK)
        *out = info.flops;
    et_graph_reset(g);
    return status;
}

/* ---- roles ---- */

/* As the class of its layer has it, outputs included. */
static enum et_param_role
layer_role(const struct et_leaf *leaf)
{
    const struct et_module *m = leaf->module;
    if (leaf->param->kind != ET_PARAM || leaf->param->desc.ndim < 2)
        return ET_ROLE_OTHER;
    if (et_module_is(m, &et_linear_class) || et_module_is(m, &et_conv2d_class))
        return ET_ROLE_MATRIX;
    if (et_module_is(m, &et_conv1d_class) ||
        et_module_is(m, &et_conv_transpose2d_class))
        return ET_ROLE_MATRIX_IN_OUT;
    return ET_ROLE_OTHER;
}

enum et_param_role
et_model_param_role(const struct et_model *m, const struct et_leaves *leaves, int i)
{
    if (!m || !leaves)
        return ET_ROLE_OTHER;
    const struct et_leaf *leaf = &leaves->v[i];
    enum et_param_role role = layer_role(leaf);
    int64_t outputs = leaf->param->desc.shape[role == ET_ROLE_MATRIX_IN_OUT];
    if (role == ET_ROLE_OTHER || outputs != m->num_classes)
        return role;
    for (int later = i + 1; later < leaves->n; later++)
        if (layer_role(&leaves->v[later]) != ET_ROLE_OTHER)
            return role;
    return ET_ROLE_OTHER;
}
