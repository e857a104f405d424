/* SPDX-License-Identifier: Apache-2.0 */
/* runlist.c: finding runs, and the text of what is known of them. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/library/index.h"

struct eti_index *
cli_run_index(struct cli *c, int *exit)
{
    struct eti_index *index;
    et_status status = eti_index_open(c->cx, NULL, &index);
    if (status == ET_OK && eti_index_problem(index))
        et_report(c->cx, ET_LOG_WARN, "the index of runs cannot be kept: %s",
                  eti_index_problem(index));
    *exit = status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    return index;
}

struct json_t *
cli_run_list(struct cli *c, bool again, int64_t most, int64_t *of, int *exit)
{
    json_t *list = NULL;
    struct eti_index *index = cli_run_index(c, exit);
    if (!index)
        return NULL;
    et_status status = eti_index_update(index, "runs", again);
    if (status == ET_OK)
        status = eti_index_list(index, most, &list);
    *of = eti_index_count(index);
    eti_index_close(&index);
    *exit = status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    return list;
}

struct json_t *
cli_run_names(struct cli *c)
{
    json_t *list = NULL;
    struct eti_index *index = NULL;
    et_status status = eti_index_open(c->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_update(index, "runs", false);
    if (status == ET_OK)
        status = eti_index_names(index, &list);
    et_error_clear(c->cx);
    eti_index_close(&index);
    return list;
}

void
cli_run_remember(struct cli *c, const char *directory)
{
    struct eti_index *index;
    et_status status = eti_index_open(c->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_add(index, directory);
    if (status != ET_OK)
        et_report(c->cx, ET_LOG_INFO, "%s", et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    eti_index_close(&index);
}

static int
unknown(struct cli *c, struct eti_index *index, const char *text)
{
    enum { MOST = 256 };
    const char *names[MOST];
    json_t *list = NULL;
    int n = 0;
    if (eti_index_names(index, &list) != ET_OK)
        et_error_clear(c->cx);
    for (size_t i = 0; i < json_array_size(list) && n < MOST; i++) {
        const json_t *facts = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(facts, "name"));
        if (name)
            names[n++] = name;
    }
    const char *near = et_nearest(text, names, n);
    int code =
        near ? cli_fail(c, CLI_E_NO_RUN, NULL,
                        "no run is called '%s' (did you mean '%s'?)", text, near)
             : cli_fail(c, CLI_E_NO_RUN, "etude runs lists them",
                        strcmp(text, "last") == 0 ? "there is no run yet, so no '%s'"
                                                  : "no run is called '%s'",
                        text);
    json_decref(list);
    return code;
}

static json_t *
read_directory(struct cli *c, const char *directory, int *exit)
{
    json_t *facts;
    et_status status = eti_facts_read(c->cx, directory, &facts);
    if (status != ET_OK) {
        *exit = cli_fail_status(c, ETI_STAGE_DATA, status);
        return NULL;
    }
    cli_run_remember(c, directory);
    eti_facts_make_true(facts);
    return facts;
}

struct json_t *
cli_run_find(struct cli *c, const char *text, int *exit)
{
    char path[PATH_MAX];
    *exit = CLI_OK;
    snprintf(path, sizeof path, "%s/run.json", text);
    if (access(path, F_OK) == 0)
        return read_directory(c, text, exit);
    json_t *found = NULL;
    struct eti_index *index = cli_run_index(c, exit);
    if (!index)
        return NULL;
    et_status status = eti_index_find(index, "runs", text, &found);
    if (status != ET_OK)
        *exit = cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    else if (!found)
        *exit = unknown(c, index, text);
    eti_index_close(&index);
    return found;
}

struct et_events *
cli_run_events(struct cli *c, const struct json_t *facts, int *exit)
{
    char path[PATH_MAX];
    struct et_events *e;
    snprintf(path, sizeof path, "%s/events.log",
             json_string_value(json_object_get(facts, "directory")));
    et_status status = et_events_open(c->cx, path, &e);
    *exit = status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_DATA, status);
    return e;
}

const char *
cli_fact(const struct json_t *facts, const char *key, char *buf, size_t size)
{
    char value[ETI_FACT_TEXT];
    const char *text = eti_facts_get(facts, key, value);
    if (!text)
        text = "-";
    return et_visible(buf, size, text, strlen(text));
}

const char *
cli_clock(double t, char *buf, size_t size)
{
    time_t seconds = (time_t)t;
    struct tm local;
    if (t <= 0 || !localtime_r(&seconds, &local) ||
        strftime(buf, size, "%Y-%m-%d %H:%M", &local) == 0)
        snprintf(buf, size, "-");
    return buf;
}
