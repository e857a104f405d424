/* SPDX-License-Identifier: Apache-2.0 */
/* R33: checkpoints that somebody made to do harm: every digest in them is right.
 * Headers that lie are refused with a sentence, and what holds any value at all is
 * refused or loaded, and trained on, without a crash. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/checkpoint/names.h"
#include "core/models/safetensors.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

enum { STEP = 3, TEXT = 1024 };

static char dir[512], pristine[512], step_name[ETI_STEP_NAME];

static const char *
place(const char *root, const char *file)
{
    return path_to(path_to(root, step_name), file);
}

/* ---- forging ---- */

/* FILE gets these bytes, and MANIFEST their number and digest. */
static void
forge(const char *file, const void *bytes, size_t n)
{
    char from[TEXT], to[TEXT], was[ETI_DIGEST_TEXT], is[ETI_DIGEST_TEXT];
    size_t old;
    void *before = read_whole(place(dir, file), &old);
    eti_hash_text(before, old, was);
    eti_hash_text(bytes, n, is);
    free(before);
    static const char form[] =
        "\"name\": \"%s\",\n      \"bytes\": %zu,\n      \"xxh3_128\": \"%s\"";
    snprintf(from, sizeof from, form, file, old, was);
    snprintf(to, sizeof to, form, file, n, is);
    reseal(dir, STEP, from, to);
    write_whole(place(dir, file), bytes, n);
}

static void
put_back(void)
{
    static const char *const all[] = {"MANIFEST", "model-00000.safetensors",
                                      "optim-00000.safetensors",
                                      "state-00000.safetensors"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n;
        void *bytes = read_whole(place(pristine, all[i]), &n);
        write_whole(place(dir, all[i]), bytes, n);
        free(bytes);
    }
}

/* A run that begins there, and two batches more. 0: it trained; 1: it was refused; 2:
 * something else came of it. */
static int
try(struct et_ctx *cx, char *why, size_t size)
{
    const struct et_load_config from = {.directory = dir, .name = step_name};
    struct saving_run s;
    et_status status;
    why[0] = '\0';
    if (saving_open(&s, cx, &(struct saving_setup){.load = &from}, &status)) {
        status = et_trainer_fit(s.r.trainer, (struct et_time){2, ET_TIME_BATCH});
        snprintf(why, size, "%s", et_error_get(cx)->message);
        saving_close(&s);
        et_error_clear(cx);
        return 0;
    }
    snprintf(why, size, "%s", et_error_get(cx)->message);
    et_error_clear(cx);
    return status == ET_EFORMAT || status == ET_EINVAL ? 1 : 2;
}

/* ---- headers that lie ---- */

/* FROM in the header of the weights becomes TO. */
static const struct {
    const char *name, *from, *to, *message;
} lies[] = {
    {"an overlap", "[0,", "[4,", "bytes, not [4,"},
    {"a beginning before all", "[0,", "[-4,", "data_offsets"},
    {"an end past all", "\"shape\":[8],\"data_offsets\":[",
     "\"shape\":[8],\"data_offsets\":[9", "data_offsets"},
    {"another dtype", "\"F32\"", "\"I32\"", "the run wants"},
    {"a narrower dtype", "\"F32\"", "\"F16\"", "bytes, not"},
    {"an unknown dtype", "\"F32\"", "\"F33\"", "unknown dtype 'F33'"},
    {"a shape of too many", "\"shape\":[8]", "\"shape\":[4611686018427387904,8]",
     "overflows"},
    {"a shape below 0", "\"shape\":[8]", "\"shape\":[-8]", "shape is not"},
    {"nine axes", "\"shape\":[8]", "\"shape\":[1,1,1,1,1,1,1,1,8]", "at most 8"},
    {"the same in another shape", "\"shape\":[8]", "\"shape\":[2,4]", "the run wants"},
    {"a name of two", "\"fc.bias\"", "\"fc.weight\"", "twice"},
    {"a name that no run has", "\"fc.bias\"", "\"fc.byas\"", "not the one in MANIFEST"},
    {"a path for a name", "\"fc.bias\"", "\"../../fc.bias\"",
     "not the one in MANIFEST"},
    {"no JSON", "{", "[", "does not begin"},
    {"text behind it", "}}", "}}}", "JSON"},
    {"bytes that are not UTF-8", "\"fc.bias\"", "\"fc.\xff\"", "UTF-8"},
};

/* The file with another header, for free(). */
static void *
with_header(const char *from, const char *to, size_t *n)
{
    uint8_t *old = read_whole(place(pristine, "model-00000.safetensors"), n);
    uint64_t length;
    memcpy(&length, old, sizeof length);
    char *text = strndup((char *)old + sizeof length, length), *at = strstr(text, from);
    if (!at)
        bail("the header has no %s: %s", from, text);
    size_t data = *n - sizeof length - length;
    size_t now = length - strlen(from) + strlen(to);
    uint8_t *out = malloc(sizeof length + now + 1 + data);
    snprintf((char *)out + sizeof length, now + 1, "%.*s%s%s", (int)(at - text), text,
             to, at + strlen(from));
    memcpy(out + sizeof length + now, old + sizeof length + length, data);
    length = now;
    memcpy(out, &length, sizeof length);
    *n = sizeof length + now + data;
    free(text);
    free(old);
    return out;
}

static void
headers(struct et_ctx *cx)
{
    char why[TEXT];
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        size_t n;
        void *bytes = with_header(lies[i].from, lies[i].to, &n);
        put_back();
        forge("model-00000.safetensors", bytes, n);
        free(bytes);
        int outcome = try(cx, why, sizeof why);
        ok(outcome == 1 && strstr(why, lies[i].message), "%s: %s", lies[i].name, why);
    }
    static const uint64_t lengths[] = {UINT64_MAX, INT64_MAX, 1ull << 24,
                                       1 << 20,    1,         0};
    int refused = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n;
        uint8_t *bytes = read_whole(place(pristine, "model-00000.safetensors"), &n);
        put_back();
        memcpy(bytes, &lengths[i], sizeof lengths[i]);
        forge("model-00000.safetensors", bytes, n);
        free(bytes);
        refused += try(cx, why, sizeof why) == 1;
    }
    is_int(refused, (int)(sizeof lengths / sizeof *lengths),
           "headers of 2^64 - 1, 2^63 - 1, 2^24, 2^20, 1 and 0 bytes are refused");
    put_back();
    is_int(try(cx, why, sizeof why), 0, "and the sound one is not");
}

/* ---- any value at all ---- */

/* Fills the bytes of T in FILE, every digest right. */
static void
fill(const char *file, const struct eti_st_tensor *t, int64_t data_at, int pattern)
{
    char was[ETI_DIGEST_TEXT], is[ETI_DIGEST_TEXT], from[TEXT], to[TEXT];
    size_t n, bytes = (size_t)(t->end - t->begin);
    put_back();
    uint8_t *all = read_whole(place(dir, file), &n), *at = all + data_at + t->begin;
    eti_hash_text(at, bytes, was);
    if (pattern >= 0)
        memset(at, pattern, bytes);
    else
        for (size_t i = 0; i < bytes; i++) /* INT64_MAX; as a double, a NaN */
            at[i] = i % 8 == 7 ? 0x7f : 0xff;
    eti_hash_text(at, bytes, is);
    forge(file, all, n);
    snprintf(from, sizeof from, "\"%s\": \"%s\"", t->name, was);
    snprintf(to, sizeof to, "\"%s\": \"%s\"", t->name, is);
    reseal(dir, STEP, from, to);
    free(all);
}

static void
values(struct et_ctx *cx, const char *file)
{
    static const int patterns[] = {0x00, 0x01, 0x7f, 0x80, 0xff, -1};
    struct eti_st_header h;
    size_t size;
    int64_t n;
    int outcomes[3] = {0}, tried = 0;
    char why[TEXT];
    uint8_t *bytes = read_whole(place(pristine, file), &size);
    need(cx, eti_st_header_bytes(cx, file, bytes, (int64_t)size, &eti_st_limits, &n));
    need(cx, eti_st_parse(cx, file, (char *)bytes + ETI_ST_PREFIX, n,
                          (int64_t)size - ETI_ST_PREFIX - n, &eti_st_limits, &h));
    for (int64_t i = 0; i < h.n; i++)
        for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++, tried++) {
            fill(file, &h.v[i], ETI_ST_PREFIX + n, patterns[k]);
            int outcome = try(cx, why, sizeof why);
            outcomes[outcome]++;
            if (outcome == 2)
                diag("%s filled with %d: %s", h.v[i].name, patterns[k], why);
        }
    ok(tried > 0 && outcomes[2] == 0,
       "%s: %d times every byte of a value is forged: %d are refused, %d trained on",
       file, tried, outcomes[1], outcomes[0]);
    eti_st_release(&h);
    free(bytes);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct saving_run s;
    et_status status;
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    snprintf(pristine, sizeof pristine, "%s", path_to(scratch_folder(), "pristine"));
    eti_step_name(STEP, step_name);
    for (int i = 0; i < 2; i++) {
        const struct et_checkpoint_config to = saves_to(i ? dir : pristine, -1);
        if (!saving_open(&s, cx, &(struct saving_setup){.checkpoint = &to}, &status))
            bail("%s", et_error_get(cx)->message);
        saving_train(&s, STEP);
        saving_close(&s);
    }
    alarm(300); /* two batches that never end are a failure too */
    headers(cx);
    values(cx, "model-00000.safetensors");
    values(cx, "optim-00000.safetensors");
    values(cx, "state-00000.safetensors");
    remove_tree(dir);
    remove_tree(pristine);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left in memory");
    et_ctx_free(&cx);
    return done();
}
