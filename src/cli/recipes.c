/* SPDX-License-Identifier: Apache-2.0 */
/* recipes.c: `etude recipes`: which are installed, the text of one, a copy to
 * change. */
#include "config.h"

#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/recipe/beside.h"

/* The first line, a comment, says what a recipe is for. */
static void
read_title(const char *path, char *buf, size_t size)
{
    char line[256] = "";
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = '\0';
    if (f)
        fclose(f);
    const char *at = line + strspn(line, "# ");
    et_visible(buf, size, at, line[0] == '#' ? strcspn(at, "\n") : 0);
}

/* Its NAME begins at BASE, in PATH, and may have a folder: speedup/bible_hot. */
static void
add_recipe(json_t *list, const char *path, const char *base)
{
    char name[2 * NAME_MAX], title[256];
    json_t *other;
    size_t i;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(".yaml")), base);
    json_array_foreach(
        list, i, other) if (strcmp(json_string_value(json_object_get(other, "name")),
                                   name) == 0) return; /* a better folder has it */
    read_title(path, title, sizeof title);
    json_array_append_new(
        list, json_pack("{s:o, s:o, s:o}", "name", cli_json_text(name), "title",
                        cli_json_text(title), "path", cli_json_text(path)));
}

/* Adds what PATTERN, of a path below FOLDER, finds. */
static void
add_matching(json_t *list, const char *folder, const char *pattern)
{
    char path[PATH_MAX + 16];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (glob(path, 0, NULL, &found) == 0)
        for (size_t k = 0; k < found.gl_pathc; k++)
            add_recipe(list, found.gl_pathv[k], found.gl_pathv[k] + strlen(folder) + 1);
    globfree(&found);
}

struct json_t *
cli_recipe_list(void)
{
    json_t *list = json_array();
    char folder[PATH_MAX];
    for (int i = 0; cli_recipe_folder(i, folder, sizeof folder); i++) {
        add_matching(list, folder, "*.yaml");
        add_matching(list, folder, "*/*.yaml");
    }
    return list;
}

static int
list_all(struct cli *c)
{
    json_t *list = cli_recipe_list(), *one;
    size_t i;
    if (c->opt.json)
        return cli_print_json(list);
    json_array_foreach(list, i, one)
        et_print(stdout, "%-24s %s\n", json_string_value(json_object_get(one, "name")),
                 json_string_value(json_object_get(one, "title")));
    json_decref(list);
    return CLI_OK;
}

/* Prints the file. */
static int
print_text(struct cli *c, const char *path)
{
    char block[4096];
    size_t n;
    FILE *in = fopen(path, "re");
    if (!in)
        return cli_fail(c, CLI_E_NAME, NULL, "cannot read %s: %s", path,
                        strerror(errno));
    const bool is_read = isatty(STDOUT_FILENO) == 1; /* by a person, and not copied */
    while (is_read && fgets(block, sizeof block, in))
        et_print(stdout, "%.*s\n", (int)strcspn(block, "\n"), block);
    while ((n = fread(block, 1, sizeof block, in)) > 0)
        fwrite(block, 1, n, stdout); /* raw: to a file or a program */
    fclose(in);
    if (ferror(stdout))
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot write the result: %s",
                        strerror(errno));
    return CLI_OK;
}

/* The file in JSON: it is no larger than recipes may be, or cut there. */
static int
print_text_json(struct cli *c, const char *path)
{
    enum { MOST = 256 << 10 };
    char *text = malloc(MOST);
    FILE *in = fopen(path, "re");
    int code = in && text ? CLI_OK
                          : cli_fail(c, CLI_E_NAME, NULL, "cannot read %s: %s", path,
                                     strerror(errno));
    size_t n = in && text ? fread(text, 1, MOST, in) : 0;
    if (code == CLI_OK)
        code = cli_print_json(json_pack("{s:s, s:s, s:s%}", "name", c->arg[0], "path",
                                        path, "text", text, n));
    if (in)
        fclose(in);
    free(text);
    return code;
}

/* Copies the recipe at PATH, with the files of its folder that it names, to --copy. */
static int
copy(struct cli *c, const char *path)
{
    char target[PATH_MAX];
    struct eti_beside *files = calloc(1, sizeof *files);
    if (!files)
        return cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the recipe's files");
    eti_beside_find(path, files);
    et_status status = eti_beside_check(c->cx, files, 0, c->opt.copy);
    for (int i = 0; i < files->n && status == ET_OK; i++) {
        status = eti_beside_copy(c->cx, files, i, c->opt.copy, target);
        if (status == ET_OK && *target && !c->opt.quiet)
            et_print(stdout, "%s\n", target);
    }
    free(files);
    return status == ET_OK ? CLI_OK
                           : cli_fail(c, status == ET_ENOENT ? CLI_E_NAME : CLI_E_WRITE,
                                      NULL, "%s", et_error_get(c->cx)->message);
}

int
cli_recipes(struct cli *c)
{
    char path[PATH_MAX];
    if (c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, NULL, "recipes takes one name, not also '%s'",
                        c->arg[1]);
    if (c->n_args == 0 && c->opt.copy)
        return cli_fail(c, CLI_E_OPERAND, NULL, "--copy needs the name of a recipe");
    if (c->n_args == 0)
        return list_all(c);
    if (!cli_recipe_find(c->arg[0], path, sizeof path))
        return cli_fail(c, CLI_E_NAME, "etude recipes lists them",
                        "no installed recipe is called '%s'", c->arg[0]);
    if (c->opt.copy)
        return copy(c, path);
    return c->opt.json ? print_text_json(c, path) : print_text(c, path);
}
