/* SPDX-License-Identifier: Apache-2.0 */
/* config.c: `etude config`: the user's configuration shown, and changed by byte range,
 * so that comments and order stay. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/recipe/edit.h"
#include "core/recipe/recipe.h"

enum { ORIGIN_BYTES = 192 };

/* ---- path ---- */

static int
config_path(struct cli *c)
{
    char path[ETI_LAYERS][PATH_MAX];
    cli_config_paths(c, path);
    if (!c->opt.json && !c->opt.verbose) {
        et_print(stdout, "%s\n", path[ETI_LAYER_USER]);
        return CLI_OK;
    }
    json_t *list = json_array();
    for (int i = 0; i < ETI_LAYERS; i++) {
        const char *layer = eti_layer_name((enum eti_layer)i);
        bool exists = access(path[i], F_OK) == 0;
        if (c->opt.json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:o, s:b}", "layer", layer, "path",
                                            cli_json_text(path[i]), "exists", exists));
        else
            et_print(stdout, "%-8s %s%s\n", layer, path[i], exists ? "" : "  (absent)");
    }
    int code = c->opt.json ? cli_print_json(json_incref(list)) : CLI_OK;
    json_decref(list);
    return code;
}

/* ---- get ---- */

/* What config_get goes through the table with. */
struct walk {
    struct cli *c;
    json_t *list;
    int code;
};

/* One setting: alone, or as a line of the list. */
static void
show(void *data, const char *path, const struct et_option *row)
{
    struct walk *w = data;
    char *text, origin[ORIGIN_BYTES];
    et_status status = eti_config_get(w->c->config, path, &text, origin, sizeof origin);
    if (status != ET_OK)
        w->code = cli_fail_status(w->c, ETI_STAGE_RECIPE, status);
    else if (w->list)
        json_array_append_new(w->list, json_pack("{s:s, s:s, s:s, s:s}", "key", path,
                                                 "value", text, "origin", origin,
                                                 "help", row ? row->help : ""));
    else
        et_print(stdout, "%s = %s  (%s)\n", path, text, origin);
    et_free(w->c->cx, text);
}

static void
collect_name(void *data, const char *path, const struct et_option *row)
{
    (void)row;
    json_array_append_new(data, json_string(path));
}

static int
unknown_key(struct cli *c, const char *key)
{
    const char *names[64];
    int n = 0;
    size_t i;
    json_t *all = json_array(), *one;
    eti_config_each(c->config, collect_name, all);
    json_array_foreach(all, i, one) if (n < 64) names[n++] = json_string_value(one);
    const char *near = et_nearest(key, names, n);
    int code = cli_fail(
        c, CLI_E_VALUE, "etude config get lists them",
        near ? "unknown key '%s' (did you mean '%s'?)" : "unknown key '%s'", key, near);
    json_decref(all);
    return code;
}

static int
config_get(struct cli *c, const char *key)
{
    char *text, origin[ORIGIN_BYTES];
    int code = cli_config_load(c);
    if (code != CLI_OK)
        return code;
    if (!key) {
        struct walk w = {c, c->opt.json ? json_array() : NULL, CLI_OK};
        eti_config_each(c->config, show, &w);
        if (w.list && w.code == CLI_OK)
            w.code = cli_print_json(json_incref(w.list));
        json_decref(w.list);
        return w.code;
    }
    et_status status = eti_config_get(c->config, key, &text, origin, sizeof origin);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    if (!text)
        return unknown_key(c, key);
    if (c->opt.json)
        code = cli_print_json(
            json_pack("{s:s, s:s, s:s}", "key", key, "value", text, "origin", origin));
    else
        et_print(stdout, "%s\n", text);
    et_free(c->cx, text);
    return code;
}

/* ---- the file ---- */

static int
cannot_write(struct cli *c, const char *path)
{
    return cli_fail(c, CLI_E_WRITE, NULL, "cannot write %s: %s", path, strerror(errno));
}

static bool
write_all(int fd, const char *text, size_t n)
{
    for (ssize_t did; n > 0; text += did, n -= (size_t)did) {
        did = write(fd, text, n);
        if (did < 0 && errno == EINTR)
            did = 0;
        if (did < 0)
            return false;
    }
    return fsync(fd) == 0;
}

/* Puts TEXT in the place of FILE, or nothing: readers see the old or the new one. A
 * link stays one: what it leads to is replaced. */
static int
replace_file(struct cli *c, const char *file, const char *text)
{
    char target[PATH_MAX], draft[PATH_MAX + 16];
    struct stat st;
    if (!eti_make_user_folders(file, 0700))
        return cannot_write(c, file);
    if (!realpath(file, target))
        snprintf(target, sizeof target, "%s", file);
    mode_t mode = stat(target, &st) == 0 ? st.st_mode & 0777 : 0600;
    snprintf(draft, sizeof draft, "%s.XXXXXX", target);
    int fd = mkostemp(draft, O_CLOEXEC);
    if (fd < 0)
        return cannot_write(c, file);
    bool wrote = fchmod(fd, mode) == 0 && write_all(fd, text, strlen(text));
    int why = errno;
    close(fd);
    if (wrote && rename(draft, target) == 0)
        return CLI_OK;
    why = wrote ? errno : why;
    unlink(draft);
    errno = why;
    return cannot_write(c, file);
}

/* The bytes of FILE, "" where it does not exist; free *TEXT. */
static int
read_file(struct cli *c, const char *file, char **text, size_t *n)
{
    FILE *f = eti_open_regular(file);
    *n = 0;
    *text = calloc(1, eti_yaml_limits.bytes + 2);
    if (!*text) {
        if (f)
            fclose(f);
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for %s", file);
    }
    if (!f && errno != ENOENT)
        return cli_fail(c, CLI_E_CONFIG, NULL, "cannot read %s: %s", file,
                        errno == EINVAL ? "not a regular file" : strerror(errno));
    if (!f)
        return CLI_OK;
    *n = fread(*text, 1, eti_yaml_limits.bytes + 1, f);
    bool failed = ferror(f) != 0;
    fclose(f);
    return failed ? cli_fail(c, CLI_E_CONFIG, NULL, "cannot read %s", file) : CLI_OK;
}

/* ---- set ---- */

/* The new text of FILE must be a configuration; it was one before, or that is said. */
static int
check_set(struct cli *c, const char *file, const char *old, size_t n, const char *now,
          const char *key, const char *value)
{
    struct et_diagnostics errors = {0};
    et_status status = eti_config_check(c->cx, old, n, file, ETI_LAYER_USER, &errors);
    if (status != ET_OK)
        return cli_config_fail(c, status, &errors);
    status = eti_config_check(c->cx, now, strlen(now), file, ETI_LAYER_USER, &errors);
    et_error_clear(c->cx);
    if (status == ET_OK)
        return CLI_OK;
    return cli_fail(c, CLI_E_VALUE, errors.v[0].hint[0] ? errors.v[0].hint : NULL,
                    "config set %s %s: %s", key, value, errors.v[0].message);
}

/* FILE, whose folder is locked, has VALUE at KEY. */
static int
set_locked(struct cli *c, const char *file, const char *key, const char *value)
{
    char *old = NULL, *now = NULL;
    struct et_diagnostics errors = {0};
    size_t n = 0;
    int code = read_file(c, file, &old, &n);
    if (code == CLI_OK) {
        et_status status = eti_yaml_set(c->cx, old, n, file, key, value, &errors, &now);
        if (status == ET_OK)
            code = check_set(c, file, old, n, now, key, value);
        else if (status == ET_ENOTSUP)
            code = cli_fail(c, CLI_E_CONFIG, "etude config edit opens it", "%s",
                            et_error_get(c->cx)->message);
        else if (errors.n > 0 && errors.v[0].file[0])
            code = cli_config_fail(c, status, &errors);
        else
            code = cli_fail(c, CLI_E_VALUE, NULL, "config set %s %s: %s", key, value,
                            et_error_get(c->cx)->message);
    }
    if (code == CLI_OK)
        code = replace_file(c, file, now);
    et_error_clear(c->cx);
    et_free(c->cx, now);
    free(old);
    return code;
}

static int
config_set(struct cli *c, const char *key, const char *value)
{
    char path[ETI_LAYERS][PATH_MAX];
    int lock;
    cli_config_paths(c, path);
    const char *file = path[ETI_LAYER_USER];
    if (!eti_make_user_folders(file, 0700))
        return cannot_write(c, file);
    et_status status = eti_lock_parent(c->cx, file, &lock);
    if (status != ET_OK)
        return cli_fail(c, status == ET_ECANCELED ? CLI_E_BUSY : CLI_E_WRITE, NULL,
                        "%s", et_error_get(c->cx)->message);
    int code = set_locked(c, file, key, value);
    eti_close(c->cx, lock);
    return code;
}

/* ---- edit ---- */

static void
add_comment(void *data, const char *path, const struct et_option *row)
{
    char expects[256];
    eti_text_add(data, "# %s: %s; %s\n", path, row->help,
                 row->type == ET_OPT_NODE
                     ? "a mapping"
                     : et_option_expects(row, expects, sizeof expects));
}

/* A new file holds the keys there are, as comments. */
static int
begin_file(struct cli *c, const char *file)
{
    struct eti_text t = {.cx = c->cx};
    if (access(file, F_OK) == 0)
        return CLI_OK;
    eti_text_add(&t, "# Etude's configuration. The keys:\n");
    eti_config_each(NULL, add_comment, &t);
    int code = t.status == ET_OK ? replace_file(c, file, t.text)
                                 : cli_fail_status(c, ETI_STAGE_RECIPE, t.status);
    et_free(c->cx, t.text);
    return code;
}

/* Runs the user's editor on FILE, and waits. */
static int
run_editor(struct cli *c, const char *file)
{
    const char *editor = getenv("VISUAL");
    char command[1024];
    int status = 0;
    if (!editor || !*editor)
        editor = getenv("EDITOR");
    if (!editor || !*editor)
        editor = "vi";
    snprintf(command, sizeof command, "%s \"$1\"", editor); /* may have options */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, "etude", file, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child < 0)
        return cli_fail(c, (enum cli_error)ET_E_SYSTEM_LIMIT, NULL,
                        "cannot start %s: %s", editor, strerror(errno));
    if (status != 0)
        return cli_fail(c, CLI_E_VALUE, "VISUAL or EDITOR names another", "%s failed",
                        editor);
    return CLI_OK;
}

static int
config_edit(struct cli *c)
{
    char path[ETI_LAYERS][PATH_MAX];
    cli_config_paths(c, path);
    int code = begin_file(c, path[ETI_LAYER_USER]);
    if (code == CLI_OK)
        code = run_editor(c, path[ETI_LAYER_USER]);
    return code == CLI_OK ? cli_config_load(c) : code;
}

int
cli_config(struct cli *c)
{
    const char *what = c->n_args ? c->arg[0] : "";
    if (strcmp(what, "path") == 0 && c->n_args == 1)
        return config_path(c);
    if (strcmp(what, "get") == 0 && c->n_args <= 2)
        return config_get(c, c->n_args == 2 ? c->arg[1] : NULL);
    if (strcmp(what, "set") == 0 && c->n_args == 3)
        return config_set(c, c->arg[1], c->arg[2]);
    if (strcmp(what, "edit") == 0 && c->n_args == 1)
        return config_edit(c);
    return cli_fail(
        c, CLI_E_OPERAND, NULL,
        "config get [KEY], config set KEY VALUE, config edit or config path");
}
