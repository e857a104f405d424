/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of a caller against the library's: what is refused, and by which name. */
#include <string.h>

#include "core/base/layouts.h"
#include "etude/plugin.h"
#include "t/tap.h"

static const struct et_layout here[] = {ET_LAYOUTS(ET_LAYOUT_ROW)};
enum { N = sizeof here / sizeof *here };
static struct et_layout theirs[N];

/* The row of the struct called TEXT; its place in theirs. */
static struct et_layout *
row(const char *text)
{
    static const char *const names[] = {
#define NAME(its_name, name, fields) #its_name,
        ET_LAYOUTS(NAME)
#undef NAME
    };
    memcpy(theirs, here, sizeof here);
    for (int i = 0; i < N; i++)
        if (strcmp(names[i], text) == 0)
            return &theirs[i];
    bail("there is no struct %s", text);
}

static void
refuses(const char *want, const char *name)
{
    char why[160] = "";
    ok(!eti_layouts_fit(theirs, N, NULL, 0, why, sizeof why), "%s is refused", name);
    is_str(why, want, "by its name");
}

int
main(void)
{
    char why[160] = "", want[160];
    ok(eti_layouts_fit(here, N, NULL, 0, why, sizeof why),
       "the headers that the library was compiled with fit");
    struct et_layout *l = row("et_conv2d_options");
    struct eti_old_layout old = {l->name, l->fields + 1};
    l->size -= 8;
    l->fields = old.fields;
    snprintf(want, sizeof want, "struct et_conv2d_options is %zu bytes there, %zu here",
             sizeof(struct et_conv2d_options) - 8, sizeof(struct et_conv2d_options));
    refuses(want, "a smaller struct");
    ok(eti_layouts_fit(theirs, N, &old, 1, why, sizeof why),
       "one that a release had, and that has grown since, fits");
    old.name++;
    ok(!eti_layouts_fit(theirs, N, &old, 1, why, sizeof why),
       "another struct's old fields do not");
    row("et_graph_stats")->fields++;
    refuses("struct et_graph_stats has other fields there than here",
            "a struct of the same size with other fields");
    row("et_run_config")->name++;
    ok(eti_layouts_fit(theirs, N, NULL, 0, why, sizeof why),
       "a struct that is not here is no difference");
    memcpy(theirs, here, sizeof here);
    theirs[0] = here[1];
    theirs[1] = here[0];
    ok(eti_layouts_fit(theirs, N, NULL, 0, why, sizeof why), "nor is another order");
    theirs[1].size++;
    ok(!eti_layouts_fit(theirs, N, NULL, 0, why, sizeof why),
       "and in another order a difference is seen");

    struct et_ctx *cx = NULL;
    is_int(et_ctx_new(&cx), ET_OK, "a program with these headers gets a context");
    et_ctx_free(&cx);
    row("et_model")->size += 16;
    is_int(et_ctx_new_for(&cx, theirs, N), ET_ENOTSUP, "one with others gets none");
    ok(!cx, "and no pointer to one");
    ok(strstr(et_error_get(NULL)->message, "struct et_model is ") != NULL,
       "and et_error_get(NULL) says why: %s", et_error_get(NULL)->message);
    row("et_desc")->size += 16;
    is_int(et_ctx_new_for(&cx, theirs, N), ET_ENOTSUP, "nor does the next");
    ok(strstr(et_error_get(NULL)->message, "struct et_desc is ") != NULL,
       "which is told its own reason: %s", et_error_get(NULL)->message);
    is_int(et_ctx_new(&cx), ET_OK, "a context that is made after that");
    is_int(et_error_get(NULL)->status, ET_OK, "leaves no error behind");
    et_ctx_free(&cx);
    return done();
}
