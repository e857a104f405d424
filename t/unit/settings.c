/* SPDX-License-Identifier: Apache-2.0 */
/* The user's settings: three files, each above the one before; what each may say; and
 * that memory may run out anywhere. (t/cli/config.t has the program's side.) */
#include "core/config/settings.h"
#include "core/recipe/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etude/ctx.h"
#include "t/tap.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"

static struct et_ctx *cx;
static struct et_diagnostics errors;
static struct eti_config *config;
static char folder[2048], file[ETI_LAYERS][2112];

static void
put(enum eti_layer layer, const char *text)
{
    FILE *f = text ? fopen(file[layer], "w") : NULL;
    unlink(text ? "" : file[layer]);
    if (!f)
        return;
    fputs(text, f);
    fclose(f);
    chmod(file[layer], 0600);
}

static et_status
load(void)
{
    const char *path[ETI_LAYERS] = {file[0], file[1], file[2]};
    eti_config_free(&config);
    et_error_clear(cx);
    memset(&errors, 0, sizeof errors);
    return eti_config_load(cx, path, &config, &errors);
}

static void
setting_is(const char *path, const char *want, const char *name)
{
    char *text, origin[160];
    if (eti_config_get(config, path, &text, origin, sizeof origin) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    is_str(text ? text : "none", want, "%s", name);
    et_free(cx, text);
}

static void
refused(const char *want, const char *name)
{
    et_status status = load();
    if (!ok(status == ET_EINVAL && !config && errors.n > 0 &&
                strstr(errors.v[0].message, want),
            "%s", name))
        diag("%s, '%s'", et_status_name(status), errors.v[0].message);
}

static void
defaults(void)
{
    static const char *const none[] = {"colo",        "colors",    "color.x",
                                       "ui.plo",      "ui.plots",  "ui.plot.x",
                                       "price.hours", "plugins.x", "env.A"};
    ok(load() == ET_OK, "no file at all is a configuration");
    setting_is("color", "auto", "of defaults");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        setting_is(none[i], "none", none[i]);
    char below[2200];
    const char *path[ETI_LAYERS] = {NULL, below, NULL};
    put(ETI_LAYER_SYSTEM, "color: never\n");
    snprintf(below, sizeof below, "%s/below", file[ETI_LAYER_SYSTEM]);
    eti_config_free(&config);
    ok(eti_config_load(cx, path, &config, &errors) == ET_OK,
       "a path through a file is that of no file");
    put(ETI_LAYER_SYSTEM, NULL);
}

static void
layers(void)
{
    put(ETI_LAYER_SYSTEM, "color: never\nprogress: plain\nenv: [A, B]\n"
                          "plugins: {one: {path: /one.so, sha256: " DIGEST "}}\n");
    put(ETI_LAYER_USER, "progress: bar\nenv: [C]\n"
                        "plugins: {two: {path: /two.so, sha256: " DIGEST "}}\n");
    put(ETI_LAYER_PROJECT, "ui: {plot: ascii}\n");
    ok(load() == ET_OK, "three files are one configuration");
    setting_is("color", "never", "what only the system says holds");
    setting_is("progress", "bar", "the user is above it");
    setting_is("ui.plot", "ascii", "and the project above both");
    setting_is("env", "[C]", "lists are replaced");
    is_int(config->n_plugins, 2, "mappings are merged");
    is_str(config->plugin[1].path, "/two.so",
           "the user's plugins stand behind the system's");
    ok(strspn(config->plugin[0].sha256, "0123456789abcdef") == 64,
       "digests are in lower case");
    ok(config->set.env.v[1] == NULL, "the list of variables ends with NULL");
    setting_is("plugins.two.path", "/two.so", "a value within the allow-list is found");
    setting_is("ui.nothing", "none", "one that is not there is not");
}

static void
refusals(void)
{
    put(ETI_LAYER_PROJECT, "plugins: {}\n");
    refused("only your own can", "a project allows no plugins, not even none");
    put(ETI_LAYER_PROJECT, NULL);
    for (int i = ETI_LAYER_SYSTEM; i <= ETI_LAYER_USER; i++) {
        chmod(file[i], 0620);
        refused("group/other writable", "nor does a file that the group can write");
        chmod(file[i], 0602);
        refused("group/other writable", "nor one that everybody else can write");
        chmod(file[i], 0644);
    }
    ok(load() == ET_OK, "files that others can read alone are good");
    if (geteuid() == 0 && chown(file[ETI_LAYER_USER], 65534, 65534) == 0)
        refused("belongs to another user", "a stranger's file allows nothing");
    else
        skip(1, "only root can give a file away");
    unlink(file[ETI_LAYER_USER]);
    put(ETI_LAYER_USER, "plugins: {x: 3}\n");
    refused("expected", "a plugin is a mapping");
    put(ETI_LAYER_USER, "plugins: {x: {path: x.so, sha256: " DIGEST "}}\n");
    refused("must begin with /", "its path is absolute");
    static const char *const digests[] = {DIGEST "0", DIGEST "g", DIGEST + 1, "''"};
    for (size_t i = 0; i < sizeof digests / sizeof *digests; i++) {
        char text[160];
        snprintf(text, sizeof text, "plugins: {x: {path: /x.so, sha256: %s}}\n",
                 digests[i]);
        put(ETI_LAYER_USER, text);
        refused("64 hexadecimal digits", "its digest has 64 digits, and no more");
    }
    put(ETI_LAYER_USER, "plugins: {x: {path: /x.so, sha256: " DIGEST ", sha1: 0}}\n");
    refused("unknown key", "and it has no other keys");
    put(ETI_LAYER_USER, "color: {never: }\n");
    refused("expected one of auto", "a word is no mapping");
}

/* ---- all of them ---- */

static char listed[2048];

/* "path value, origin" */
static void
add_setting(void *data, const char *path, const struct et_option *row)
{
    char *text, origin[2200];
    (void)data;
    (void)row;
    if (eti_config_get(config, path, &text, origin, sizeof origin) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    const char *name = strrchr(origin, '/');
    size_t n = strlen(listed);
    snprintf(listed + n, sizeof listed - n, "%.40s %.99s, %.99s\n", path,
             text ? text : "none", name ? name + 1 : origin);
    et_free(cx, text);
}

static const char *
list(void)
{
    *listed = 0;
    if (load() != ET_OK)
        bail("%s", et_error_get(cx)->message);
    eti_config_each(config, add_setting, NULL);
    return listed;
}

static void
all(void)
{
    for (int i = 0; i < ETI_LAYERS; i++)
        put((enum eti_layer)i, NULL);
    is_str(list(),
           "color auto, default\n"
           "progress auto, default\n"
           "ui.plot auto, default\n"
           "ui.mouse true, default\n"
           "ui.motion on, default\n"
           "ui.theme auto, default\n"
           "price.hour null, default\n"
           "price.of rank, default\n"
           "price.currency USD, default\n"
           "env [], default\n"
           "plugins null, default\n",
           "what holds where nobody says anything");
    put(ETI_LAYER_SYSTEM, "# nothing yet\n");
    put(ETI_LAYER_USER, "color: never\n"
                        "progress: json\n"
                        "ui:\n"
                        "  plot: block\n"
                        "  mouse: false\n"
                        "  motion: off\n"
                        "  theme: mocha\n"
                        "price: {hour: 2.5, of: run, currency: EUR}\n"
                        "env: [A]\n"
                        "plugins: {x: {path: /x.so, develop: true}}\n");
    put(ETI_LAYER_PROJECT, "price: {of: machine}\n");
    is_str(list(),
           "color never, user.yaml:1:8\n"
           "progress json, user.yaml:2:11\n"
           "ui.plot block, user.yaml:4:9\n"
           "ui.mouse false, user.yaml:5:10\n"
           "ui.motion off, user.yaml:6:11\n"
           "ui.theme mocha, user.yaml:7:10\n"
           "price.hour 2.5, user.yaml:8:15\n"
           "price.of machine, project.yaml:1:13\n"
           "price.currency EUR, user.yaml:8:39\n"
           "env [A], user.yaml:9:6\n"
           "plugins {x: {path: /x.so, develop: true}}, user.yaml:10:10\n",
           "each setting, and where it was written");
    ok(config->set.price.hour == 2.5 && config->set.price.of == ETI_PRICE_OF_MACHINE &&
           !config->set.ui.mouse && config->n_plugins == 1 &&
           config->plugin[0].develop && !config->plugin[0].sha256 &&
           strcmp(config->plugin[0].name, "x") == 0 &&
           strcmp(eti_value_get(config->plugin[0].value, "path")->text, "/x.so") == 0,
       "and a plugin under development needs no digest");
    setting_is("plugins.x.develop", "true", "a flag of a plugin is found");
    setting_is("plugins.y", "none", "a plugin that is not there is not");
    setting_is("col", "none", "a setting has all of its letters");
    setting_is("ui.plot.x", "none", "a value has nothing in it");
    setting_is("color.never", "none", "nor has one beside a table");
    put(ETI_LAYER_PROJECT, "price: {currency: CHF}\nplugins: \n");
    refused("only your own can", "a project says nothing of plugins, not even nothing");
}

/* ---- more refusals ---- */

static void
more_refusals(void)
{
    static const struct {
        const char *text, *says, *name;
    } rows[] = {
        {"plugins: {x: {path: /x.so}}\n", "sha256 is missing",
         "what is not under development has a digest"},
        {"plugins: {x: {sha256: " DIGEST "}}\n", "path", "a plugin has a path"},
        {"plugins: {x: {path: x/x.so, develop: true}}\n", "must begin with /",
         "a path under development, too, is absolute"},
        {"plugins: [x]\n", "expected a mapping from names", "plugins have names"},
        {"- color\n", "a configuration is a mapping", "a list is no configuration"},
        {"price: {hour: 0}\n", "number > 0", "an hour that costs nothing has no price"},
        {"ui: {mouse: on}\nui: {mouse: off}\n", "already set", "no key is there twice"},
    };
    for (int i = 0; i < ETI_LAYERS; i++)
        put((enum eti_layer)i, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put(ETI_LAYER_USER, rows[i].text);
        refused(rows[i].says, rows[i].name);
        memset(&errors, 0, sizeof errors);
        et_error_clear(cx);
        et_status s = eti_config_check(cx, rows[i].text, strlen(rows[i].text), "a.yaml",
                                       ETI_LAYER_USER, &errors);
        ok(s == ET_EINVAL && strstr(errors.v[0].message, rows[i].says) &&
               strcmp(et_error_get(cx)->message, errors.v[0].message) == 0,
           "and its bytes alone are refused for that");
    }
    put(ETI_LAYER_USER, "color: blue\nprogress: bar\nui: {plot: dots, mouse: true}\n");
    refused("auto", "two mistakes are one refusal,");
    ok(errors.total == 2 && errors.v[0].line == 1 && errors.v[1].line == 3 &&
           strcmp(et_error_get(cx)->message, errors.v[0].message) == 0,
       "that tells the first, and has both");
    put(ETI_LAYER_USER, NULL);
    for (int i = 0; i < ETI_LAYERS; i++) {
        static const char *const texts[] = {"env: [A]\n", "color: never\n"};
        for (int k = 0; k < 2; k++) {
            const bool bad = i == ETI_LAYER_PROJECT && k == 0;
            memset(&errors, 0, sizeof errors);
            et_error_clear(cx);
            is_int(eti_config_check(cx, texts[k], strlen(texts[k]), "a.yaml",
                                    (enum eti_layer)i, &errors),
                   bad ? ET_EINVAL : ET_OK, "%s file: %.5s is %s",
                   eti_layer_name((enum eti_layer)i), texts[k],
                   bad ? "refused" : "allowed");
        }
    }
    /* What cannot be read is no file that is not there. */
    char was[sizeof file[0]];
    snprintf(was, sizeof was, "%s", file[ETI_LAYER_USER]);
    put(ETI_LAYER_USER, "color: never\n");
    snprintf(file[ETI_LAYER_SYSTEM], sizeof file[0], "%.2099s/x", was);
    is_int(load(), ET_OK, "a file in what is no folder is not there");
    setting_is("color", "never", "and the others count");
    snprintf(file[ETI_LAYER_SYSTEM], sizeof file[0], "%s", folder);
    ok(load() == ET_EIO && !config && errors.total == 1 &&
           strstr(errors.v[0].message, "cannot read") &&
           strstr(et_error_get(cx)->message, folder),
       "a folder is an error: %s", errors.v[0].message);
    snprintf(file[ETI_LAYER_SYSTEM], sizeof file[0], "%s/system.yaml", folder);
}

static void
torture(void)
{
    struct et_alloc_stats before, after;
    int refused_allocations = 0;
    put(ETI_LAYER_USER,
        "progress: bar\nplugins: {two: {path: /two.so, sha256: " DIGEST "}}\n");
    eti_config_free(&config);
    et_alloc_get_stats(cx, &before);
    et_status status = ET_ENOMEM;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        et_alloc_fail_at(cx, k);
        status = load();
        et_alloc_fail_at(cx, 0);
        refused_allocations += status == ET_ENOMEM && !config;
    }
    ok(status == ET_OK && refused_allocations > 5, "every allocation can fail");
    eti_config_free(&config);
    et_error_clear(cx);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)after.live, (int64_t)before.live, "and leaves nothing behind");
}

int
main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.2000s/et-settings-XXXXXX", tmp ? tmp : "/tmp");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        bail("no context or folder");
    for (int i = 0; i < ETI_LAYERS; i++)
        snprintf(file[i], sizeof file[i], "%s/%s.yaml", folder,
                 eti_layer_name((enum eti_layer)i));
    defaults();
    layers();
    refusals();
    all();
    more_refusals();
    torture();
    for (int i = 0; i < ETI_LAYERS; i++)
        unlink(file[i]);
    rmdir(folder);
    et_ctx_free(&cx);
    return done();
}
