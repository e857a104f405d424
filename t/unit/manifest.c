/* SPDX-License-Identifier: Apache-2.0 */
/* MANIFEST of a checkpoint: each member comes back as itself, and a text is refused
 * from the first member on that cannot be. In memory. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint/manifest.h"
#include "etude/ctx.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

#define DIGEST "0123456789abcdef0123456789abcdef"

/* Every member is another number, every text as long as it may be. */
static struct eti_manifest
full(json_t *algorithms, json_t *tensors)
{
    struct eti_manifest m = {
        .format = ETI_MANIFEST_FORMAT,
        .incarnation = 11,
        .step = 12,
        .epoch = 13,
        .batch_in_epoch = 14,
        .sample = 15,
        .world_size = 16,
        .revision = 17,
        .weights_only = true,
        .saved = 18.5,
        .algorithms = algorithms,
        .n_files = 1,
    };
    memset(m.label, 'l', sizeof m.label - 1);
    memset(m.run_id, 'i', sizeof m.run_id - 1);
    memset(m.run_name, 'n', sizeof m.run_name - 1);
    memset(m.recipe, 'r', sizeof m.recipe - 1);
    memset(m.data, 'd', sizeof m.data - 1);
    m.file[0] = (struct eti_manifest_file){
        .name = "model-00000.safetensors", .bytes = 19, .tensors = tensors};
    memcpy(m.file[0].digest, DIGEST, sizeof m.file[0].digest);
    return m;
}

/* TEXT with its first FROM replaced by TO, and the digest of that. */
static char *
resealed(const char *text, const char *from, const char *to, size_t *n)
{
    static const char member[] = ",\n  \"digest\": \"";
    const char *at = strstr(text, from), *tail = strstr(text, member);
    char *out, digest[65];
    size_t room = strlen(text) + strlen(to) + 1;
    if (!at || !tail || !(out = malloc(room)))
        bail("MANIFEST has no %s", from);
    int body = snprintf(out, room, "%.*s%s%.*s", (int)(at - text), text, to,
                        (int)(tail - at) - (int)strlen(from), at + strlen(from));
    eti_digest_text(out, (size_t)body, digest);
    *n = (size_t)(body + snprintf(out + body, room - (size_t)body, "%s%s\"\n}\n",
                                  member, digest));
    return out;
}

static et_status
parse_changed(const char *text, const char *from, const char *to)
{
    struct eti_manifest m;
    size_t n;
    char *changed = resealed(text, from, to, &n);
    et_status status = eti_manifest_parse(cx, "step", changed, n, &m);
    eti_manifest_release(&m);
    et_error_clear(cx);
    free(changed);
    return status;
}

static void
test_manifest(void)
{
    static const char *const texts[] = {"label", "run_id", "run_name", "recipe",
                                        "data"};
    json_t *none = json_array(), *tensors = json_pack("{s:s}", "w", DIGEST);
    struct eti_manifest m = full(none, tensors), got;
    char *text;
    size_t n;
    need(cx, eti_manifest_print(cx, &m, &text, &n));
    need(cx, eti_manifest_parse(cx, "step", text, n, &got));
    ok(got.format == m.format && got.incarnation == 11 && got.step == 12 &&
           got.epoch == 13 && got.batch_in_epoch == 14 && got.sample == 15 &&
           got.world_size == 16 && got.revision == 17 && got.weights_only &&
           got.saved == 18.5 && got.n_files == 1 && got.file[0].bytes == 19 &&
           strcmp(got.file[0].digest, DIGEST) == 0,
       "each number of MANIFEST comes back");
    ok(strcmp(got.label, m.label) == 0 && strcmp(got.run_id, m.run_id) == 0 &&
           strcmp(got.run_name, m.run_name) == 0 && strcmp(got.recipe, m.recipe) == 0 &&
           strcmp(got.data, m.data) == 0,
       "and each text, as long as it may be");
    eti_manifest_release(&got);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "\"%s\"", texts[i]);
        snprintf(to, sizeof to, "\"no_%s\"", texts[i]);
        is_int(parse_changed(text, from, to), ET_EFORMAT, "%s must be there", texts[i]);
        snprintf(from, sizeof from, "\"%s\": \"", texts[i]);
        snprintf(to, sizeof to, "\"%s\": \"+", texts[i]);
        is_int(parse_changed(text, from, to), ET_EFORMAT,
               "%s of one letter more is refused", texts[i]);
    }
    char from[64], to[64];
    snprintf(from, sizeof from, "\"format\": %d", ETI_MANIFEST_FORMAT);
    snprintf(to, sizeof to, "\"format\": %d", ETI_MANIFEST_FORMAT + 1);
    is_int(parse_changed(text, from, to), ET_ENOTSUP, "the next format is not read");
    is_int(parse_changed(text, from, from), ET_OK, "this one is");
    static const char *const counts[] = {
        "\"incarnation\": 11", "\"step\": 12",       "\"epoch\": 13",
        "\"sample\": 15",      "\"world_size\": 16", "\"batch_in_epoch\": 14",
        "\"revision\": 17",    "\"bytes\": 19",
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t name = strcspn(counts[i], ":");
        snprintf(from, sizeof from, "%.*s", (int)name, counts[i]);
        snprintf(to, sizeof to, "\"no_%.*s", (int)name - 1, counts[i] + 1);
        is_int(parse_changed(text, from, to), ET_EFORMAT, "%s must be there", from);
        snprintf(from, sizeof from, "%.*s: 0", (int)name, counts[i]);
        snprintf(to, sizeof to, "%.*s: -1", (int)name, counts[i]);
        ok(parse_changed(text, counts[i], from) == ET_OK &&
               parse_changed(text, counts[i], to) == ET_EFORMAT,
           "%.*s may be 0, and not below", (int)name, counts[i]);
    }
    /* A digest: 32 hexadecimal digits. */
    static const char *const wrong[] = {"0123456789abcdef0123456789abcdeg",
                                        "0123456789ABCDEF0123456789abcdef",
                                        "0123456789abcdef0123456789abcde", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(from, sizeof from, "\"w\": \"%s\"", DIGEST);
        snprintf(to, sizeof to, "\"w\": \"%s\"", wrong[i]);
        is_int(parse_changed(text, from, to), ET_EFORMAT,
               "a tensor's digest is not '%s'", wrong[i]);
        snprintf(from, sizeof from, "\"xxh3_128\": \"%s\"", DIGEST);
        snprintf(to, sizeof to, "\"xxh3_128\": \"%s\"", wrong[i]);
        is_int(parse_changed(text, from, to), ET_EFORMAT, "nor is a file's");
    }
    et_free(cx, text);
    json_decref(none);
    json_decref(tensors);
}

enum member { ALGORITHMS, SWITCHED, LEFT_OUT, TENSORS };

/* Status of reading a MANIFEST of which one member is JSON. */
static et_status
parse_member(enum member which, const char *json)
{
    json_error_t error;
    json_t *none = json_array(), *tensors = json_object();
    json_t *value = json_loads(json, JSON_DECODE_ANY, &error);
    struct eti_manifest m =
        full(which == ALGORITHMS ? value : none, which == TENSORS ? value : tensors);
    struct eti_manifest got;
    char *text;
    size_t n;
    if (!value)
        bail("%s is not JSON", json);
    if (which == SWITCHED)
        m.switched = value;
    if (which == LEFT_OUT)
        m.left_out = value;
    need(cx, eti_manifest_print(cx, &m, &text, &n));
    et_status status = eti_manifest_parse(cx, "step", text, n, &got);
    const json_t *back = which == ALGORITHMS ? got.algorithms
                         : which == SWITCHED ? got.switched
                         : which == LEFT_OUT ? got.left_out
                                             : got.file[0].tensors;
    if (status == ET_OK && !json_equal(back, value))
        status = ET_EINTERNAL;
    eti_manifest_release(&got);
    et_error_clear(cx);
    et_free(cx, text);
    json_decref(none);
    json_decref(tensors);
    json_decref(value);
    return status;
}

static void
test_lists(void)
{
    static const struct {
        enum member which;
        bool fits;
        const char *json;
    } rows[] = {
        {ALGORITHMS, true, "[{'name': 'a', 'options': {'x': '1', 'y': '2'}}]"},
        {ALGORITHMS, false, "{'name': 'a', 'options': {}}"},
        {ALGORITHMS, false, "[{'options': {}}]"},
        {ALGORITHMS, false, "[{'name': 1, 'options': {}}]"},
        {ALGORITHMS, false, "[{'name': 'a', 'options': []}]"},
        {ALGORITHMS, false, "[{'name': 'a', 'options': {'x': 1, 'y': '2'}}]"},
        {ALGORITHMS, false, "[{'name': 'a', 'options': {'x': '1', 'y': 2}}]"},
        {ALGORITHMS, false, "[{'name': 'a'}, {'name': 'b', 'options': {}}]"},
        {SWITCHED, true, "[{'name': 'a', 'on': true}, {'name': 'b', 'on': false}]"},
        {SWITCHED, false, "{'name': 'a', 'on': true}"},
        {SWITCHED, false, "[{'name': 'a', 'on': 1}]"},
        {SWITCHED, false, "[{'name': 'a'}]"},
        {SWITCHED, false, "[{'name': 1, 'on': true}, {'name': 'b', 'on': false}]"},
        {LEFT_OUT, true, "['model/*', 'optimizer']"},
        {LEFT_OUT, false, "{'model/*': 1}"},
        {LEFT_OUT, false, "'model/*'"},
        {LEFT_OUT, false, "['model/*', 1]"},
        {LEFT_OUT, false, "[1, 'model/*']"},
        {TENSORS, true, "{'v': '" DIGEST "', 'w': '" DIGEST "'}"},
        {TENSORS, false, "{'v': 1, 'w': '" DIGEST "'}"},
        {TENSORS, false, "{'v': '" DIGEST "', 'w': 1}"},
        {TENSORS, false, "['v', 'w']"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[128];
        snprintf(json, sizeof json, "%s", rows[i].json);
        for (char *c = json; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        is_int(parse_member(rows[i].which, json), rows[i].fits ? ET_OK : ET_EFORMAT,
               "in a MANIFEST %s %s", json, rows[i].fits ? "comes back" : "is refused");
    }
    json_t *none = json_array();
    struct eti_manifest m = full(none, NULL), got;
    char *text;
    size_t n;
    for (int k = 0; k < 2; k++) {
        m.stays = k;
        m.weights_only = !k;
        json_t *tensors = json_object();
        m.file[0].tensors = tensors;
        need(cx, eti_manifest_print(cx, &m, &text, &n));
        need(cx, eti_manifest_parse(cx, "step", text, n, &got));
        ok(got.stays == k && got.weights_only == !k && !got.switched && !got.left_out,
           "a checkpoint that %s, of %s", k ? "stays" : "may go",
           k ? "all" : "weights alone");
        eti_manifest_release(&got);
        is_int(parse_changed(text, "\"saved\": 18.5", "\"saved\": \"18.5\""),
               ET_EFORMAT, "its time is a number");
        is_int(parse_changed(text,
                             k ? "\"weights_only\": false" : "\"weights_only\": true",
                             "\"weights_only\": 1"),
               ET_EFORMAT, "what it holds is yes or no");
        et_free(cx, text);
        json_decref(tensors);
    }
    m.n_files = 0;
    need(cx, eti_manifest_print(cx, &m, &text, &n));
    is_int(eti_manifest_parse(cx, "step", text, n, &got), ET_EFORMAT,
           "there is no checkpoint of no file");
    eti_manifest_release(&got);
    et_error_clear(cx);
    et_free(cx, text);
    json_decref(none);
}

/* Two checkpoints are one where step and contents are. */
static void
test_fold(void)
{
    struct eti_manifest a = full(NULL, NULL), b = a;
    a.n_files = b.n_files = 2;
    a.file[1] = b.file[1] = a.file[0];
    is_int((int64_t)eti_manifest_fold(&a), (int64_t)eti_manifest_fold(&b),
           "one checkpoint has one number");
    int same = 0;
    for (int file = 0; file < 2; file++)
        for (size_t i = 0; i < strlen(DIGEST); i++) {
            b = a;
            b.file[file].digest[i] = b.file[file].digest[i] == 'f' ? 'e' : 'f';
            same += eti_manifest_fold(&a) == eti_manifest_fold(&b);
        }
    is_int(same, 0, "each digit of each digest counts");
    b = a;
    b.step++;
    ok(eti_manifest_fold(&a) != eti_manifest_fold(&b), "and the step");
}

int
main(void)
{
    struct et_alloc_stats stats;
    cx = need_ctx();
    test_manifest();
    test_lists();
    test_fold();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
