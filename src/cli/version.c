/* SPDX-License-Identifier: Apache-2.0 */
/* version.c: what this program is made of, and which devices answer. */
#include "config.h"

#include <jansson.h>
#include <libfyaml.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "cli/cli.h"
#include "core/graph/gpu_libs.h"

struct device_row {
    const char *name;
    bool answers;
    struct et_device_info info;
    char why[512];
};

static void
ask_device(struct cli *c, struct device_row *row)
{
    struct et_device *dev;
    if (et_device_open(c->cx, row->name, 0, 0, &dev) == ET_OK) {
        row->answers = true;
        et_device_get_info(dev, &row->info);
        et_device_close(&dev);
        return;
    }
    et_visible(row->why, sizeof row->why, et_error_get(c->cx)->message,
               strlen(et_error_get(c->cx)->message));
    et_error_clear(c->cx);
}

static json_t *
libraries(void)
{
    unsigned xxh = XXH_versionNumber();
    char text[32];
    snprintf(text, sizeof text, "%u.%u.%u", xxh / 10000, xxh / 100 % 100, xxh % 100);
    return json_pack("{s:s, s:s, s:s, s:s}", "libfyaml", fy_library_version(),
                     "jansson", jansson_version_str(), "zlib", zlibVersion(), "xxhash",
                     text);
}

static void
add_file(void *data, const char *name, const char *path)
{
    json_object_set_new(data, name, json_string(path));
}

static void
print_device(const struct device_row *row)
{
    char memory[32];
    if (!row->answers) {
        et_print(stdout, "device   %-4s no: %s\n", row->name, row->why);
        return;
    }
    et_print(stdout, "device   %-4s %s, ", row->name, row->info.name);
    if (row->info.threads > 0)
        printf("%d threads, ", row->info.threads);
    et_print(stdout, "%s, %s\n",
             cli_bytes((double)row->info.memory_bytes, memory, sizeof memory),
             row->info.library);
}

static json_t *
device_json(const struct device_row *row)
{
    if (!row->answers)
        return json_pack("{s:s, s:b, s:s}", "name", row->name, "answers", 0, "why",
                         row->why);
    return json_pack("{s:s, s:b, s:s, s:i, s:I, s:s}", "name", row->name, "answers", 1,
                     "hardware", row->info.name, "threads", row->info.threads,
                     "memory_bytes", (json_int_t)row->info.memory_bytes, "library",
                     row->info.library);
}

int
cli_version(struct cli *c)
{
    struct device_row rows[] = {{.name = "cpu"}, {.name = "cuda"}};
    enum { N_ROWS = sizeof rows / sizeof rows[0] };
    if (c->command && c->n_args > 0)
        return cli_fail(c, CLI_E_OPERAND, NULL, "version takes no operand, not '%s'",
                        c->arg[0]);
    if (!c->opt.verbose && !c->opt.json) {
        et_print(stdout, "etude %s\n", PACKAGE_VERSION);
        return CLI_OK;
    }
    json_t *used = libraries(), *devices = json_array(), *files = json_object(), *value;
    const char *name;
    for (int i = 0; i < N_ROWS; i++)
        ask_device(c, &rows[i]);
    eti_gpu_libs_each(add_file, files);
    if (c->opt.json) {
        for (int i = 0; i < N_ROWS; i++)
            json_array_append_new(devices, device_json(&rows[i]));
        return cli_print_json(
            json_pack("{s:s, s:i, s:o, s:o, s:o, s:s}", "version", PACKAGE_VERSION,
                      "device_abi", ET_DEVICE_ABI, "devices", devices, "libraries",
                      used, "cuda_libraries", files, "built_with", ET_BUILT_WITH));
    }
    et_print(stdout, "etude %s, device ABI %d\n", PACKAGE_VERSION, ET_DEVICE_ABI);
    for (int i = 0; i < N_ROWS; i++)
        print_device(&rows[i]);
    json_object_foreach(used, name, value)
        et_print(stdout, "library  %s %s\n", name, json_string_value(value));
    json_object_foreach(files, name, value)
        et_print(stdout, "library  %s\n", json_string_value(value));
    et_print(stdout, "built    %s\n", ET_BUILT_WITH);
    json_decref(files);
    json_decref(used);
    json_decref(devices);
    return CLI_OK;
}
