/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c: `etude attach`, and `etude` alone: the workbench with a run. */
#include "config.h"

#include <jansson.h>
#include <limits.h>

#include "cli/workbench.h"
#include "core/library/index.h"

/* Watches the run of FACTS, DATA. */
static int
watch(struct cli *c, struct tui_app *app, void *data)
{
    struct tui_source *source;
    et_status status = tui_source_dir(c->cx, json_incref(data), &source);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    tui_app_attach(app, &source);
    return CLI_OK;
}

int
cli_workbench_run(struct cli *c, enum tui_where first, struct json_t *facts)
{
    return cli_workbench(c, first, watch, facts);
}

/* The newest run that goes on; NULL: none does. Does not wait until pages of runs that
 * were written elsewhere meanwhile are read: Runs shows them as they come. */
static json_t *
find_live(struct cli *c, struct eti_index *index)
{
    json_t *list = NULL;
    et_status status = eti_index_look(index, "runs", false);
    if (status == ET_OK)
        status = eti_index_live(index, &list);
    if (status != ET_OK)
        (void)cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    json_t *found = json_incref(json_array_get(list, 0));
    json_decref(list);
    return found;
}

int
cli_open(struct cli *c)
{
    int code;
    struct eti_index *index = cli_run_index(c, &code);
    json_t *facts = index ? find_live(c, index) : NULL;
    bool any = index && eti_index_count(index) > 0;
    enum tui_where first = facts ? TUI_IN_monitor : any ? TUI_IN_runs : TUI_IN_compose;
    c->index = index;
    code = cli_workbench(c, first, facts ? watch : NULL, facts);
    c->index = NULL;
    eti_index_close(&index);
    json_decref(facts);
    return code;
}

int
cli_watch(struct cli *c, const char *directory)
{
    json_t *facts;
    et_status status = eti_facts_read(c->cx, directory, &facts);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    int code = cli_workbench(c, TUI_IN_monitor, watch, facts);
    json_decref(facts);
    return code;
}

/* Watches the run at the struct etd_target DATA. */
static int
watch_far(struct cli *c, struct tui_app *app, void *data)
{
    struct tui_source *source;
    et_status status = tui_source_hub(c->cx, data, &source);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    tui_app_attach(app, &source);
    return CLI_OK;
}

int
cli_watch_far(struct cli *c, struct etd_target *target)
{
    return cli_workbench(c, TUI_IN_monitor, watch_far, target);
}

int
cli_attach(struct cli *c)
{
    char folder[PATH_MAX];
    struct etd_target target;
    bool is_far;
    int code;
    if (c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "attach takes one run");
    const char *text = c->n_args ? c->arg[0] : "last";
    et_status status = etd_target_parse(
        c->cx, text, cli_user_folder(folder, sizeof folder), &target, &is_far);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    if (is_far)
        return cli_watch_far(c, &target);
    json_t *facts = cli_run_find(c, text, &code);
    if (facts)
        code = cli_workbench(c, TUI_IN_monitor, watch, facts);
    json_decref(facts);
    return code;
}
