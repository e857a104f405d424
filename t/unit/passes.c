/* SPDX-License-Identifier: Apache-2.0 */
/* The passes over a plan's steps: whether each runs behind what it needs, and what
 * ETUDE_DUMP=passes says of them. */
#include "core/graph/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"
#include "t/tap.h"

/* ---- their order ---- */

static void
has_fault(const struct eti_pass *pass, int n, int at, const char *which,
          const char *says)
{
    char need[64] = "";
    int found = eti_passes_fault(pass, n, need, sizeof need);
    if (!ok(found == at && strcmp(need, which) == 0, "%s", says))
        diag("found %d '%s', wanted %d '%s'", found, need, at, which);
}

#define N(table) (sizeof(table) / sizeof *(table))

static void
test_order(void)
{
    static const struct eti_pass good[] = {
        {"sort", NULL, "", ""}, {"a", NULL, "sort", "sort"}, {"sort", NULL, "", ""}};
    static const struct eti_pass late[] = {
        {"b", NULL, "a", ""}, {"a", NULL, "", ""}, {"sort", NULL, "", ""}};
    static const struct eti_pass undone[] = {{"sort", NULL, "", ""},
                                             {"a", NULL, "", "sort"},
                                             {"b", NULL, "a sort", ""},
                                             {"sort", NULL, "", ""}};
    static const struct eti_pass longer[] = {
        {"sort_more", NULL, "", ""}, {"b", NULL, "sort", ""}, {"sort", NULL, "", ""}};
    static const struct eti_pass open[] = {{"sort", NULL, "", ""},
                                           {"a", NULL, "", "more sort"}};
    has_fault(eti_passes, eti_n_passes, -1, "",
              "each pass of passes.def runs after what it needs");
    has_fault(good, N(good), -1, "", "what was undone may be done again");
    has_fault(late, N(late), 0, "a", "a pass before one that it needs is found");
    has_fault(undone, N(undone), 2, "sort", "so is one that needs what was undone");
    has_fault(longer, N(longer), 1, "sort", "a name is no other that begins with it");
    has_fault(open, N(open), N(open), "sort", "steps must be sorted after all passes");
}

/* Without the first of the rows NAME. */
static void
test_missing(const char *name, const char *says)
{
    struct eti_pass pass[64] = {{0}};
    char need[64] = "";
    int n = 0, skipped = 0;
    for (int i = 0; i < eti_n_passes; i++)
        if (skipped || strcmp(eti_passes[i].name, name) != 0)
            pass[n++] = eti_passes[i];
        else
            skipped = 1;
    int at = eti_passes_fault(pass, n, need, sizeof need);
    ok(skipped && at >= 0 && strcmp(need, name) == 0, "%s: %s", says,
       at >= 0 && at < n ? pass[at].name : "-");
}

/* ---- what the dump says ---- */

static struct et_ctx *cx;
static struct et_device *dev;
static char dump[1 << 14];

static void
note(void *data, enum et_log_level level, const char *text)
{
    size_t n = strlen(dump);
    (void)data;
    (void)level;
    snprintf(dump + n, sizeof dump - n, "%s\n", text);
}

static struct et_tensor *
leaf(int ndim, const int64_t *shape)
{
    struct et_tensor *t;
    if (et_tensor_new(cx, dev, ET_F32, ndim, shape,
                      ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

static void
says_line(const char *line, const char *says)
{
    if (!ok(strstr(dump, line) != NULL, "%s", says))
        diag("no '%s' in\n%s", line, dump);
}

/* Plans (relu(batch_norm(x)) + 1) 2. */
static void
plan_with(const char *asks)
{
    const int64_t image[] = {2, 3, 4, 4}, channels[] = {3};
    struct et_tensor *x = leaf(4, image), *gamma = leaf(1, channels),
                     *beta = leaf(1, channels);
    struct et_graph *g;
    struct et_plan_info info;
    dump[0] = '\0';
    setenv("ETUDE_DUMP", asks, 1);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    et_graph_set_dry(g, true);
    struct et_tensor *y =
        et_relu(g, et_batch_norm(g, x, gamma, beta, 1e-5, NULL, NULL));
    y = et_mul_scalar(g, et_add_scalar(g, y, 1), 2);
    if (et_plan(g, &y, 1, &info) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&gamma);
    et_tensor_free(&beta);
}

static void
test_dump(void)
{
    plan_with("passes,plan");
    says_line("passes: 4 nodes became 4 steps\n",
              "the steps before any pass are counted");
    says_line("fuse_norm             4      3 relu -1\n",
              "a pass is named with the steps before and after it, and what went");
    says_line("fuse_elementwise      3      2 add_scalar -1 mul_scalar -1 fused +1\n",
              "and what it put in their place");
    says_line("fuse_sum              3      3\n", "one that found nothing says so");
    says_line("plan: 4 nodes became 2 steps\n",
              "the last leaves the steps of the plan");
    const char *at = dump;
    bool all = true;
    for (int i = 0; i < eti_n_passes && all; i++) {
        char name[32];
        snprintf(name, sizeof name, "\n%-16s ", eti_passes[i].name);
        at = strstr(at, name);
        all = at != NULL;
        at += all;
    }
    ok(all, "all passes are there, in their order");
    plan_with("plan");
    ok(strstr(dump, "fuse_norm") == NULL, "nobody hears of them who did not ask");
}

/* ---- values ---- */

/* Is value A the same as B? (-1: an operand that is left out. What lies before the
 * values must not be looked at; here it is one that is like the first.) */
static void
test_same_value(void)
{
    struct et_desc d, shorter;
    et_desc_init(&d, ET_F32, 1, (const int64_t[]){4}, ET_ROW_MAJOR);
    et_desc_init(&shorter, ET_F32, 1, (const int64_t[]){3}, ET_ROW_MAJOR);
    struct eti_value v[] = {
        {.desc = d},       {.desc = d},
        {.desc = d},       {.desc = d, .offset = 4},
        {.desc = shorter}, {.desc = d, .root = 4},
    };
    const struct eti_ir ir = {.value = v + 1, .n_values = N(v) - 1};
    static const struct {
        int a, b;
        bool same;
        const char *says;
    } rows[] = {
        {0, 0, true, "a value is the same as itself"},
        {0, 1, true, "two views of one place are"},
        {0, 2, false, "those of two places are not"},
        {0, 3, false, "nor are those of two shapes"},
        {0, 4, false, "nor of two arrays"},
        {0, -1, false, "nor is one the same as none"},
        {-1, -1, true, "none is the same as none"},
    };
    for (size_t i = 0; i < N(rows); i++)
        ok(eti_ir_same_value(&ir, rows[i].a, rows[i].b) == rows[i].same &&
               eti_ir_same_value(&ir, rows[i].b, rows[i].a) == rows[i].same,
           "%s", rows[i].says);
}

int
main(void)
{
    test_order();
    test_missing("remove_dead", "without the removal of dead steps one complains");
    test_missing("sort", "without the first sort one complains");
    test_missing("fuse_norm", "chains come after norms that take a ReLU");
    test_same_value();
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no device");
    et_ctx_set_log(cx, ET_LOG_INFO, note, NULL);
    test_dump();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
