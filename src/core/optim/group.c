/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: see group.h. A group is what torch.optim calls one, but named by a pattern:
 * a recipe has no list of parameters to give. */
#include "config.h"

#include "core/optim/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"

static const struct et_option table[] = {
    {
        .name = "match",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_group_options, is.match),
        .flags = ET_OPT_REQUIRED,
        .help =
            "extended regular expression that some part of a parameter's name fits; "
            "the first group that fits has the parameter",
    },
    {
        .name = "lr",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_group_options, is.lr),
        .flags = ET_OPT_OPTIONAL | ET_OPT_MAY_CHANGE,
        .help =
            "rate before the schedule, 0.01, or a multiple of the optimizer's, 0.1x; "
            "unset: the optimizer's",
    },
    {
        .name = "weight_decay",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct eti_group_options, is.weight_decay),
        .min = 0,
        .max = HUGE_VAL,
        .flags = ET_OPT_OPTIONAL | ET_OPT_MAY_CHANGE,
        .help = "unset: the optimizer's",
    },
    {
        .name = "scheduler",
        .type = ET_OPT_PARTS,
        .kind = ET_KIND_SCHEDULER,
        .offset = offsetof(struct eti_group_options, scheduler),
        .help = "how the group's rate changes; none: as the others'",
    },
    {.name = NULL},
};

const struct et_component et_param_group_info = {
    .name = "group",
    .class_name = "ParameterGroup",
    .summary = "parameters that an optimizer treats apart from the rest",
    .source = "torch.optim's param_groups",
    .applies_to = "any",
    .options = table,
    .options_size = sizeof(struct eti_group_options),
};

bool
eti_group_rate(const char *lr, double rate, double *out)
{
    char *end;
    *out = rate;
    if (!lr)
        return true;
    double number = strtod(lr, &end);
    if (end == lr || !(number >= 0) || isinf(number))
        return false;
    *out = strcmp(end, "x") == 0 ? number * rate : number;
    return strcmp(end, "x") == 0 || !*end;
}

static et_status
compile(struct et_ctx *cx, const struct et_param_group *group, int i, regex_t *out)
{
    char why[128];
    double rate;
    if (!eti_group_rate(group->lr, 1, &rate))
        return ET_FAIL(
            cx, ET_EINVAL,
            "optimizer.groups.%d.lr: '%s' is no rate: write 0.01, or 0.1x for "
            "a tenth of the optimizer's",
            i, group->lr);
    int code = regcomp(out, group->match ? group->match : "", REG_EXTENDED | REG_NOSUB);
    if (code == 0)
        return ET_OK;
    regerror(code, out, why, sizeof why);
    return ET_FAIL(cx, ET_EINVAL,
                   "optimizer.groups.%d.match: '%s' is no regular expression: %s", i,
                   group->match, why);
}

et_status
eti_group_patterns_init(struct et_ctx *cx, struct et_param_group *const *groups, int n,
                        struct eti_group_patterns *out)
{
    out->n = 0;
    if (n > ET_MAX_PARAM_GROUPS)
        return ET_FAIL(cx, ET_EINVAL, "%d optimizer.groups, at most %d are possible", n,
                       ET_MAX_PARAM_GROUPS);
    for (int i = 0; i < n; i++) {
        ET_TRY(compile(cx, groups[i], i, &out->match[i]));
        out->n++;
    }
    return ET_OK;
}

void
eti_group_patterns_release(struct eti_group_patterns *p)
{
    for (int i = 0; i < p->n; i++)
        regfree(&p->match[i]);
    p->n = 0;
}

int
eti_group_patterns_find(const struct eti_group_patterns *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (regexec(&p->match[i], name, 0, NULL, 0) == 0)
            return 1 + i;
    return 0;
}
