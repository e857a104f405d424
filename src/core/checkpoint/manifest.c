/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c: see manifest.h. */
#include "core/checkpoint/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_BYTES = 32 };
static const char digest_member[] = ",\n  \"digest\": \"";
static const char ending[] = "\"\n}\n";

static const char *const shard_names[] = {
#define ROW(code, text) text,
    ETI_SHARD_MAP(ROW)
#undef ROW
};

const char *
eti_shard_name(enum eti_shard kind, int rank, char *buf, size_t size)
{
    snprintf(buf, size, "%s-%05d.safetensors", shard_names[kind], rank);
    return buf;
}

void
eti_digest_text(const void *bytes, size_t n, char out[65])
{
    unsigned char hash[HASH_BYTES];
    crypto_generichash(hash, sizeof hash, bytes, n, NULL, 0);
    sodium_bin2hex(out, 65, hash, sizeof hash);
}

/* ---- writing ---- */

static json_t *
file_json(const struct eti_manifest_file *f)
{
    return json_pack("{s:s, s:I, s:s, s:O}", "name", f->name, "bytes",
                     (json_int_t)f->bytes, "xxh3_128", f->digest, "tensors",
                     f->tensors);
}

static json_t *
body_json(const struct eti_manifest *m)
{
    json_t *files = json_array();
    for (int i = 0; i < m->n_files; i++)
        json_array_append_new(files, file_json(&m->file[i]));
    json_t *out = json_pack(
        "{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:s, s:I, s:f, "
        "s:O, s:o}",
        "format", (json_int_t)m->format, "label", m->label, "run_id", m->run_id,
        "run_name", m->run_name, "incarnation", (json_int_t)m->incarnation, "step",
        (json_int_t)m->step, "epoch", (json_int_t)m->epoch, "batch_in_epoch",
        (json_int_t)m->batch_in_epoch, "sample", (json_int_t)m->sample, "world_size",
        (json_int_t)m->world_size, "weights_only", m->weights_only, "recipe", m->recipe,
        "data", m->data, "revision", (json_int_t)m->revision, "saved", m->saved,
        "algorithms", m->algorithms, "files", files);
    if (out && m->stays)
        json_object_set_new(out, "stays", json_true());
    if (out && m->switched)
        json_object_set(out, "switched", m->switched);
    if (out && m->left_out)
        json_object_set(out, "left_out", m->left_out);
    return out;
}

et_status
eti_manifest_print(struct et_ctx *cx, const struct eti_manifest *m, char **out,
                   size_t *n)
{
    char digest[65];
    void *block;
    json_t *json = body_json(m);
    char *body = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!body)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: MANIFEST");
    size_t length = strlen(body) - strlen("\n}"); /* up to where a member may follow */
    size_t bytes = length + strlen(digest_member) + 64 + strlen(ending);
    et_status status = et_alloc(cx, bytes + 1, &block);
    if (status == ET_OK) {
        eti_digest_text(body, length, digest);
        snprintf(block, bytes + 1, "%.*s%s%s%s", (int)length, body, digest_member,
                 digest, ending);
        *out = block;
        *n = bytes;
    }
    free(body);
    return status;
}

/* ---- reading ---- */

struct reading {
    struct et_ctx *cx;
    const char *name;
};

#define REFUSE(r, ...) refuse((r), ET_EFORMAT, __VA_ARGS__)

static et_status refuse(const struct reading *r, et_status status, const char *fmt, ...)
    ET_PRINTF(3, 4);

static et_status
refuse(const struct reading *r, et_status status, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ET_FAIL(r->cx, status, "%s: MANIFEST %s", r->name, why);
}

/* The digest before anything else is believed. */
static et_status
check_digest(const struct reading *r, const char *text, size_t n)
{
    char digest[65];
    size_t tail = strlen(digest_member) + 64 + strlen(ending);
    if (n < tail)
        return REFUSE(r, "is cut off: %zu bytes", n);
    size_t body = n - tail;
    const char *at = text + body;
    if (memcmp(at, digest_member, strlen(digest_member)) != 0 ||
        memcmp(text + n - strlen(ending), ending, strlen(ending)) != 0)
        return REFUSE(r, "does not end in its digest");
    eti_digest_text(text, body, digest);
    if (memcmp(digest, at + strlen(digest_member), 64) != 0)
        return REFUSE(r, "does not have the digest that it says");
    return ET_OK;
}

/* Copies a string member that must fit. */
static et_status
copy_text(const struct reading *r, const json_t *object, const char *key, char *out,
          size_t size)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || json_string_length(value) >= size)
        return REFUSE(r, "has no %s of less than %zu bytes", key, size);
    snprintf(out, size, "%s", json_string_value(value));
    return ET_OK;
}

static et_status
copy_count(const struct reading *r, const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return REFUSE(r, "has no %s >= 0", key);
    *out = json_integer_value(value);
    return ET_OK;
}

static bool
is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* A file's own name and nothing of a path. */
static bool
is_shard(const char *name)
{
    char want[64];
    for (int kind = 0; kind < ETI_SHARD_COUNT; kind++)
        if (strcmp(eti_shard_name((enum eti_shard)kind, 0, want, sizeof want), name) ==
            0)
            return true;
    return false;
}

static et_status
read_file(const struct reading *r, json_t *json, struct eti_manifest_file *f)
{
    const char *key;
    json_t *value;
    f->name = json_string_value(json_object_get(json, "name"));
    if (!f->name || !is_shard(f->name))
        return REFUSE(r, "names a file that no checkpoint has");
    ET_TRY(copy_count(r, json, "bytes", &f->bytes));
    ET_TRY(copy_text(r, json, "xxh3_128", f->digest, sizeof f->digest));
    f->tensors = json_object_get(json, "tensors");
    bool fine = json_is_object(f->tensors) && is_hex(f->digest, ETI_DIGEST_TEXT - 1);
    json_object_foreach(f->tensors, key, value) fine =
        fine && json_is_string(value) &&
        is_hex(json_string_value(value), ETI_DIGEST_TEXT - 1);
    return fine ? ET_OK : REFUSE(r, "has no digests of %s", f->name);
}

static et_status
read_files(const struct reading *r, struct eti_manifest *m)
{
    const json_t *files = json_object_get(m->json, "files");
    size_t n = json_array_size(files);
    if (n < 1 || n > ETI_MANIFEST_FILES)
        return REFUSE(r, "lists %zu files, not 1 to %d", n, ETI_MANIFEST_FILES);
    for (size_t i = 0; i < n; i++) {
        ET_TRY(read_file(r, json_array_get(files, i), &m->file[i]));
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->file[k].name, m->file[i].name) == 0)
                return REFUSE(r, "lists %s twice", m->file[i].name);
    }
    m->n_files = (int)n;
    return ET_OK;
}

/* A list of texts, where it is there. */
static et_status
check_left_out(const struct reading *r, struct eti_manifest *m)
{
    size_t i;
    json_t *one;
    m->left_out = json_object_get(m->json, "left_out");
    if (m->left_out && !json_is_array(m->left_out))
        return REFUSE(r, "left_out is no list");
    json_array_foreach(m->left_out, i, one) if (!json_is_string(one)) return REFUSE(
        r, "left_out is no list of texts");
    return ET_OK;
}

static et_status
check_algorithms(const struct reading *r, struct eti_manifest *m)
{
    m->algorithms = json_object_get(m->json, "algorithms");
    bool fine = json_is_array(m->algorithms);
    for (size_t i = 0; fine && i < json_array_size(m->algorithms); i++) {
        const json_t *a = json_array_get(m->algorithms, i);
        const char *key;
        json_t *value, *options = json_object_get(a, "options");
        fine = json_is_string(json_object_get(a, "name")) && json_is_object(options);
        json_object_foreach(options, key, value) fine = fine && json_is_string(value);
    }
    return fine ? ET_OK : REFUSE(r, "has no list of algorithms");
}

/* A list of names, each on or off, where it is there. */
static et_status
check_switched(const struct reading *r, struct eti_manifest *m)
{
    size_t i;
    json_t *one;
    m->switched = json_object_get(m->json, "switched");
    if (m->switched && !json_is_array(m->switched))
        return REFUSE(r, "switched is no list");
    json_array_foreach(m->switched, i, one)
    {
        if (!json_is_string(json_object_get(one, "name")) ||
            !json_is_boolean(json_object_get(one, "on")))
            return REFUSE(r, "switched is no list of names, each on or off");
    }
    return ET_OK;
}

static et_status
read_members(const struct reading *r, struct eti_manifest *m)
{
    const struct {
        const char *key;
        int64_t *out;
    } counts[] = {
        {"format", &m->format},
        {"incarnation", &m->incarnation},
        {"step", &m->step},
        {"epoch", &m->epoch},
        {"batch_in_epoch", &m->batch_in_epoch},
        {"sample", &m->sample},
        {"world_size", &m->world_size},
        {"revision", &m->revision},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ET_TRY(copy_count(r, m->json, counts[i].key, counts[i].out));
        if (m->format > ETI_MANIFEST_FORMAT) /* the first: others may differ there */
            return ET_FAIL(r->cx, ET_ENOTSUP,
                           "%s: written by format %" PRId64 ", this etude reads <= %d",
                           r->name, m->format, ETI_MANIFEST_FORMAT);
    }
    ET_TRY(copy_text(r, m->json, "label", m->label, sizeof m->label));
    ET_TRY(copy_text(r, m->json, "run_id", m->run_id, sizeof m->run_id));
    ET_TRY(copy_text(r, m->json, "run_name", m->run_name, sizeof m->run_name));
    ET_TRY(copy_text(r, m->json, "recipe", m->recipe, sizeof m->recipe));
    ET_TRY(copy_text(r, m->json, "data", m->data, sizeof m->data));
    const json_t *weights_only = json_object_get(m->json, "weights_only");
    const json_t *saved = json_object_get(m->json, "saved");
    if (!json_is_boolean(weights_only) || !json_is_number(saved))
        return REFUSE(r, "lacks weights_only or saved");
    m->weights_only = json_is_true(weights_only);
    m->saved = json_number_value(saved);
    m->stays = json_is_true(json_object_get(m->json, "stays"));
    ET_TRY(check_left_out(r, m));
    ET_TRY(check_algorithms(r, m));
    ET_TRY(check_switched(r, m));
    return read_files(r, m);
}

et_status
eti_manifest_parse(struct et_ctx *cx, const char *name, const char *text, size_t n,
                   struct eti_manifest *out)
{
    const struct reading r = {cx, name};
    json_error_t error;
    *out = (struct eti_manifest){0};
    ET_TRY(check_digest(&r, text, n));
    out->json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!out->json) /* jansson has no sure word for want of memory */
        return refuse(&r, ET_EINVAL, "is not JSON, byte %d, or memory is short",
                      error.position);
    return read_members(&r, out);
}

void
eti_manifest_release(struct eti_manifest *m)
{
    json_decref(m->json);
    *m = (struct eti_manifest){0};
}

uint64_t
eti_manifest_fold(const struct eti_manifest *m)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)m->step;
    for (int i = 0; i < m->n_files; i++)
        for (const char *c = m->file[i].digest; *c; c++)
            h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return h;
}
