/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of files and checkpoints: opened, compared and converted. */
#include "core/checkpoint/tensors.h"
#include "etude/diagnostic.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct et_ctx *cx;

#define T(name, dtype, shape, begin, end)                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                           \
    ",\"data_offsets\":[" #begin "," #end "]}"

/* Writes a file of HEADER and DATA; its path, one of four. */
static const char *
file_of(const char *name, const char *header, const void *data, size_t n)
{
    static char paths[4][600];
    static int turn;
    static uint8_t bytes[64 << 10];
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    if (n)
        memcpy(bytes + 8 + length, data, n);
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s",
             write_file(name, bytes, 8 + length + n, false));
    return path;
}

static const char *
in_folder(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

/* A checkpoint of step STEP in checkpoints/: fc.weight [2], a moment of it, a
 * number. */
static void
save_as(int64_t format, int64_t step, const float weight[2])
{
    static const int64_t shape[] = {2};
    float moment[2] = {7, 8};
    int64_t number = step, bytes;
    char directory[600];
    struct et_archive a = {0};
    struct eti_manifest m = {
        .format = format,
        .step = step,
        .epoch = 1,
        .incarnation = 1,
        .world_size = 1,
        .label = "ep1",
        .run_name = "brisk-otter",
        .algorithms = json_array(),
    };
    struct et_desc values, one;
    et_desc_init(&values, ET_F32, 1, shape, ET_ROW_MAJOR);
    et_desc_init(&one, ET_I64, 0, NULL, ET_ROW_MAJOR);
    eti_archive_begin(&a, cx);
    need(cx, eti_archive_add(&a, "model/fc.weight", &values, (void *)weight));
    need(cx, eti_archive_add(&a, "optimizer/exp_avg/fc.weight", &values, moment));
    need(cx, eti_archive_add(&a, "trainer/ba", &one, &number));
    a.item[2].is_number = true;
    snprintf(directory, sizeof directory, "%s", in_folder("checkpoints"));
    need(cx, eti_store_write(cx, directory, &a, &m, -1, &bytes));
    json_decref(m.algorithms);
    eti_archive_release(&a);
}

static void
save(int64_t step, const float weight[2])
{
    save_as(ETI_MANIFEST_FORMAT, step, weight);
}

static void
remove_checkpoint(int64_t step)
{
    static const char *const files[] = {"MANIFEST", "model-00000.safetensors",
                                        "optim-00000.safetensors",
                                        "state-00000.safetensors", ""};
    char name[ETI_STEP_NAME], path[128];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "checkpoints/%s/%s", eti_step_name(step, name),
                 files[i]);
        remove(in_folder(path));
    }
}

static const float f32[] = {1.5f, -2, 0.1f, 65519, 65520, 1e-8f};
#define SIX T("w", "F32", "[2,3]", 0, 24)

/* ---- opening ---- */

static void
opening(void)
{
    struct eti_tensors s;
    const char *path = file_of("a.safetensors",
                               "{\"__metadata__\":{\"who\":\"me\"}," SIX
                               "," T("b", "U8", "[2]", 24, 26) "}",
                               "123456789012345678901234yz", 26);
    need(cx, eti_tensors_open(cx, path, ETI_TENSORS_ALL, &s));
    is_int(s.n, 2, "a file's tensors are there");
    is_str(s.v[0].t->name, "b", "sorted by name");
    ok(!s.is_checkpoint && !s.v[0].digest, "nobody vouches for a file's values");
    ok(eti_tensors_find(&s, "w") == &s.v[1] && !eti_tensors_find(&s, "x"),
       "they are found by name");
    eti_tensors_release(&s);
    const float one[] = {1, 2}, two[] = {1, 2.5f};
    save(3, one);
    save(12, two);
    struct {
        const char *path;
        enum eti_tensors_part part;
        int64_t step, n;
        const char *what;
    } table[] = {
        {"checkpoints/step-000000000003", ETI_TENSORS_MODEL, 3, 1,
         "a checkpoint's weights"},
        {"checkpoints/step-000000000003/", ETI_TENSORS_ALL, 3, 3, "all it holds"},
        {"checkpoints", ETI_TENSORS_ALL, 12, 3, "the newest in a folder"},
        {"", ETI_TENSORS_MODEL, 12, 1, "the newest of a run"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        et_status status =
            eti_tensors_open(cx, in_folder(table[i].path), table[i].part, &s);
        ok(status == ET_OK && s.manifest.step == table[i].step && s.n == table[i].n,
           "%s is opened", table[i].what);
        eti_tensors_release(&s);
    }
    need(cx, eti_tensors_open(cx, scratch_folder(), ETI_TENSORS_MODEL, &s));
    is_str(s.v[0].t->name, "fc.weight",
           "weights have the names that they have in files");
    eti_tensors_release(&s);
}

static void
refusals(void)
{
    struct {
        const char *path;
        et_status status;
        const char *says;
    } table[] = {
        {"nothing", ET_ENOENT, "No such file"},
        {"empty", ET_ENOENT, "there is no checkpoint"},
        {"checkpoints/step-000000000099", ET_ENOENT, "step-000000000099"},
        {"x.pt", ET_EFORMAT, "is a pickle; convert it to safetensors elsewhere"},
        {"bad", ET_EFORMAT, "does not begin with '{'"},
    };
    struct eti_tensors s;
    mkdir(in_folder("empty"), 0700);
    write_file("x.pt", "\x80\2}q.", 5, false);
    file_of("bad", "[]", "", 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        et_status status =
            eti_tensors_open(cx, in_folder(table[i].path), ETI_TENSORS_ALL, &s);
        is_int(status, table[i].status, "%s is refused", table[i].path);
        const char *said = take_error(cx);
        ok(strstr(said, table[i].says) != NULL, "with a sentence: %s", said);
    }
    rmdir(in_folder("empty"));
}

/* ---- comparing ---- */

static struct eti_difference
compare(const char *ha, const void *a, size_t na, const char *hb, const void *b,
        size_t nb)
{
    struct eti_tensors x, y;
    struct eti_difference d;
    need(cx, eti_tensors_open(cx, file_of("a", ha, a, na), ETI_TENSORS_ALL, &x));
    need(cx, eti_tensors_open(cx, file_of("b", hb, b, nb), ETI_TENSORS_ALL, &y));
    need(cx, eti_tensor_compare(&x.v[0], &y.v[0], &d));
    eti_tensors_release(&x);
    eti_tensors_release(&y);
    return d;
}

static void
comparing(void)
{
    static const float a[] = {1, 2, 3, 4}, b[] = {1, 2.5f, 3, 2};
    static const float odd[] = {NAN, INFINITY, -0.0f, 0}, even[] = {NAN, 1, 0, 0};
    static const uint16_t halves[] = {0x3c00, 0x4000, 0x4200, 0x4400};
    static const int64_t big[] = {INT64_C(1) << 62},
                         bigger[] = {(INT64_C(1) << 62) + 1};
    const char *four = "{" T("w", "F32", "[4]", 0, 16) "}";
    const char *one = "{" T("w", "I64", "[]", 0, 8) "}";
    struct eti_difference d = compare(four, a, 16, four, a, 16);
    ok(d.count == 4 && d.different == 0 && d.max == 0 && d.rms == 0,
       "equal values do not differ");
    d = compare(four, a, 16, four, b, 16);
    ok(d.different == 2 && d.max == 2,
       "the values that differ are counted, the most is told");
    is_near(d.rms, sqrt((0.25 + 4) / 4), 1e-15, "and the root of their mean square");
    d = compare(four, a, 16, "{" T("w", "F16", "[4]", 0, 8) "}", halves, 8);
    is_int(d.different, 0, "values are compared, not their dtypes");
    d = compare(four, odd, 16, four, even, 16);
    ok(d.different == 1 && isinf(d.max), "NaN equals NaN, infinity nothing finite");
    d = compare(four, even, 16, four, odd, 16);
    ok(d.different == 1 && isinf(d.max), "nor a finite number infinity");
    d = compare(four, odd, 16, four, a, 16);
    ok(d.different == 4 && isinf(d.max), "NaN differs from every number");
    d = compare(four, a, 16, four, odd, 16);
    ok(d.different == 4 && isinf(d.max), "and every number from NaN");
    int wrong = 0;
    for (int i = 0; i < 3 * 4; i++) {
        const float not_finite[] = {NAN, INFINITY, -INFINITY};
        float c[4];
        memcpy(c, a, sizeof c);
        c[i % 4] = not_finite[i / 4];
        for (int k = 0; k < 2; k++) {
            d = compare(four, k ? c : a, 16, four, k ? a : c, 16);
            wrong += d.different != 1 || !isinf(d.max) || !isinf(d.rms);
        }
    }
    is_int(wrong, 0,
           "one value that is not finite is without end away, on either side");
    d = compare(one, big, 8, one, bigger, 8);
    ok(d.different == 1 && d.max == 1, "integers past 2^53 are told apart");
}

/* Values are read in pieces of 4096: tensors of one less and one more, and of several
 * pieces, which differ in their last number alone. */
static void
comparing_pieces(void)
{
    static const int lengths[] = {4095, 4096, 4097, 8192, 10000};
    static float a[10000], b[10000];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char header[96];
        int n = lengths[i];
        size_t bytes = (size_t)n * sizeof *a;
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]}}",
                 n, bytes);
        b[n - 1] = 3;
        struct eti_difference d = compare(header, a, bytes, header, b, bytes);
        ok(d.count == n && d.different == 1 && d.max == 3,
           "of %d numbers the last is compared, too", n);
        b[n - 1] = 0;
    }
}

/* ---- converting ---- */

/* Converts the file of HEADER and DATA; the new one's first tensor in OUT. */
static struct eti_converted
convert(const char *header, const void *data, size_t n, enum et_dtype dtype, void *out)
{
    struct eti_tensors s;
    struct eti_converted done;
    need(cx, eti_tensors_open(cx, file_of("a", header, data, n), ETI_TENSORS_ALL, &s));
    need(cx, eti_tensors_convert(&s, dtype, in_folder("new"), &done));
    eti_tensors_release(&s);
    need(cx, eti_tensors_open(cx, in_folder("new"), ETI_TENSORS_ALL, &s));
    ok(s.v[0].t->ndim == 2 && s.v[0].t->shape[1] == 3, "the shape stays");
    need(cx, eti_weight_file_read(s.v[0].file, s.v[0].t, 0, out,
                                  s.v[0].t->end - s.v[0].t->begin));
    is_int(s.file[0].file.size, done.bytes, "the size is told");
    eti_tensors_release(&s);
    return done;
}

static void
converting(void)
{
    static const uint16_t want_f16[] = {0x3e00, 0xc000, 0x2e66, 0x7bff, 0x7c00, 0};
    static const uint16_t want_bf16[] = {0x3fc0, 0xc000, 0x3dcd,
                                         0x4780, 0x4780, 0x322c};
    uint8_t raw[64];
    struct eti_converted done = convert("{" SIX "}", f32, 24, ET_F16, raw);
    ok(memcmp(raw, want_f16, sizeof want_f16) == 0, "floats become halves, rounded");
    is_int(done.overflowed, 1, "one that became infinite is counted");
    done = convert("{" SIX "}", f32, 24, ET_BF16, raw);
    ok(memcmp(raw, want_bf16, sizeof want_bf16) == 0, "or bf16");
    is_int(done.overflowed, 0, "which has the range of f32");
    enum { MANY = 3 * 4096 };
    static float many[MANY];
    static uint16_t halves[MANY];
    many[1] = many[2] = many[5000] = many[MANY - 1] = 1e10f;
    done = convert("{" T("w", "F32", "[4096,3]", 0, 49152) "}", many, sizeof many,
                   ET_F16, halves);
    is_int(done.overflowed, 4, "of a large tensor those of all its parts");
    (void)convert("{" T("w", "F16", "[2,3]", 0, 12) "}", want_f16, 12, ET_F32, raw);
    float wide[6];
    memcpy(wide, raw, sizeof wide);
    ok(wide[0] == 1.5f && wide[3] == 65504 && isinf(wide[4]), "halves become floats");
    (void)convert("{" SIX "}", f32, 24, ET_NONE, raw);
    ok(memcmp(raw, f32, sizeof f32) == 0, "without a dtype values stay as they are");
    static const double ties[] = {1 + 0x1p-11, 1 + 3 * 0x1p-11, 0x1p-25,
                                  0x1.8p-24,   -0x1p-15,        1 + 0x1p-11 + 0x1p-40};
    static const uint16_t want_ties[] = {0x3c00, 0x3c02, 0, 2, 0x8200, 0x3c01};
    (void)convert("{" T("w", "F64", "[2,3]", 0, 48) "}", ties, 48, ET_F16, raw);
    ok(memcmp(raw, want_ties, sizeof want_ties) == 0,
       "ties go to even, once, also among the smallest");
    static const int64_t counts[] = {1, 2, 3, 4, 5, 6};
    (void)convert("{" T("w", "I64", "[2,3]", 0, 48) "}", counts, 48, ET_F16, raw);
    ok(memcmp(raw, counts, sizeof counts) == 0, "integers stay integers");
}

/* Every half there is, widened and narrowed, is itself; so is every bf16. */
static void
all_halves(void)
{
    static const enum et_dtype dtypes[] = {ET_F16, ET_BF16};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        int changed = 0;
        for (uint32_t i = 0; i <= UINT16_MAX; i++) {
            uint16_t bits = (uint16_t)i, again;
            double v;
            eti_widen(dtypes[k], &bits, 1, &v);
            eti_narrow(dtypes[k], &v, 1, &again);
            changed += again != bits && !isnan(v);
        }
        is_int(changed, 0, "every %s comes back as it was", et_dtype_name(dtypes[k]));
    }
    /* What becomes infinite is counted, unless it was. */
    static const double large[] = {INFINITY, -INFINITY, 65519, 65520, -1e5,
                                   1e38,     3.4e38,    -1e39, NAN};
    static const enum et_dtype narrow[] = {ET_F16, ET_BF16, ET_F32};
    static const int64_t overflowed[] = {5, 2, 1};
    for (int k = 0; k < 3; k++) {
        float out[9];
        is_int(eti_narrow(narrow[k], large, 9, out), overflowed[k],
               "numbers too large for %s are counted", et_dtype_name(narrow[k]));
    }
}

static const char *
note(const struct eti_tensors *s, const char *key)
{
    const json_t *all = json_object_get(s->file[0].header.json, "__metadata__");
    const char *text = json_string_value(json_object_get(all, key));
    return text ? text : "";
}

static void
metadata(void)
{
    struct eti_tensors s;
    struct eti_converted done;
    const char *path =
        file_of("a", "{\"__metadata__\":{\"who\":\"me\"}," SIX "}", f32, 24);
    need(cx, eti_tensors_open(cx, path, ETI_TENSORS_ALL, &s));
    need(cx, eti_tensors_convert(&s, ET_F16, in_folder("new"), &done));
    eti_tensors_release(&s);
    need(cx, eti_tensors_open(cx, in_folder("new"), ETI_TENSORS_ALL, &s));
    is_str(note(&s, "who"), "me", "what a file says of itself goes with it");
    eti_tensors_release(&s);
    need(cx, eti_tensors_open(cx, scratch_folder(), ETI_TENSORS_MODEL, &s));
    need(cx, eti_tensors_convert(&s, ET_NONE, in_folder("new"), &done));
    eti_tensors_release(&s);
    need(cx, eti_tensors_open(cx, in_folder("new"), ETI_TENSORS_ALL, &s));
    is_str(note(&s, "run"), "brisk-otter",
           "a checkpoint's file says which run it is of");
    is_str(note(&s, "ba"), "12", "and when it was saved");
    is_str(note(&s, "ep"), "1", "in epochs, too");
    is_str(note(&s, "checkpoint"), "ep1", "and as what");
    eti_tensors_release(&s);
}

static bool
is_there(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

static void
targets(void)
{
    struct eti_tensors s;
    struct eti_converted done;
    char path[600];
    snprintf(path, sizeof path, "%s", file_of("a", "{" SIX "}", f32, 24));
    need(cx, eti_tensors_open(cx, path, ETI_TENSORS_ALL, &s));
    (void)link(path, in_folder("again"));
    const char *const refused[] = {"a", "again", "checkpoints",
                                   "checkpoints/step-000000000012/new", "no/new"};
    static const char *const says[] = {
        "is what is to be converted", "is what is to be converted",
        "not a regular file", "lies in a checkpoint", "cannot write"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        bool fails =
            eti_tensors_convert(&s, ET_F16, in_folder(refused[i]), &done) != ET_OK;
        const char *said = take_error(cx);
        ok(fails && strstr(said, says[i]), "%s is not written: %s", refused[i], said);
    }
    eti_tensors_release(&s);
    need(cx, eti_tensors_open(cx, path, ETI_TENSORS_ALL, &s));
    ok(s.v[0].t->dtype == ET_F32, "the input is as it was");
    eti_tensors_release(&s);
    remove(in_folder("again"));
}

/* ---- what MANIFEST vouches for ---- */

static void
damaged(void)
{
    struct eti_tensors good, bad;
    struct eti_difference d;
    struct eti_converted done;
    char path[600];
    remove(in_folder("new"));
    snprintf(path, sizeof path, "%s",
             in_folder("checkpoints/step-000000000012/model-00000.safetensors"));
    int fd = open(path, O_WRONLY);
    ok(fd >= 0 && pwrite(fd, "\1", 1, lseek(fd, -1, SEEK_END)) == 1,
       "(a value of a checkpoint is changed)");
    close(fd);
    need(cx, eti_tensors_open(cx, in_folder("checkpoints/step-000000000003"),
                              ETI_TENSORS_MODEL, &good));
    need(cx, eti_tensors_open(cx, in_folder("checkpoints/step-000000000012"),
                              ETI_TENSORS_MODEL, &bad));
    ok(eti_tensor_compare(&good.v[0], &bad.v[0], &d) == ET_EFORMAT,
       "values that MANIFEST does not vouch for are not compared");
    ok(strstr(take_error(cx), "'fc.weight': digest mismatch") != NULL, "which is said");
    ok(eti_tensors_convert(&bad, ET_F16, in_folder("new"), &done) == ET_EFORMAT,
       "nor converted");
    (void)take_error(cx);
    ok(!is_there("new"), "and no file is left");
    eti_tensors_release(&good);
    eti_tensors_release(&bad);
    ok(truncate(path, 100) == 0, "(then the file is cut)");
    ok(eti_tensors_open(cx, in_folder("checkpoints/step-000000000012"),
                        ETI_TENSORS_MODEL, &bad) == ET_EFORMAT,
       "a file of another size is not opened");
    (void)take_error(cx);
}

/* The model's file of checkpoint 3 is another, which is whole in itself. */
static void
exchanged(void)
{
    static const char name[] = "checkpoints/step-000000000003/model-00000.safetensors";
    static const struct {
        const char *header;
        int longer; /* than the one that MANIFEST knows */
        const char *says, *what;
    } rows[] = {
        {"{" T("fc.weighs", "F32", "[2]", 0, 8) "}", 0,
         "'fc.weighs' is not in MANIFEST", "with another tensor"},
        {"{}", 0, "not the tensors of MANIFEST", "without it"},
        {"{" T("fc.weight", "F32", "[2]", 0, 8) "}", 1, "bytes, MANIFEST says",
         "of one byte more"},
        {"{" T("fc.weight", "F32", "[2]", 0, 8) "}", -1, "bytes, MANIFEST says",
         "of one byte less"},
    };
    struct eti_tensors s;
    struct stat st;
    char header[1024];
    const float one[] = {1, 2};
    if (stat(in_folder(name), &st) != 0)
        bail("no %s", name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t data = rows[i].header[1] == '}' ? 0 : sizeof one;
        int room = (int)st.st_size - 8 - (int)data + rows[i].longer;
        snprintf(header, sizeof header, "%-*s", room, rows[i].header);
        if ((int)strlen(header) != room)
            bail("no room for %s", rows[i].header);
        file_of(name, header, one, data);
        is_int(eti_tensors_open(cx, in_folder("checkpoints/step-000000000003"),
                                ETI_TENSORS_MODEL, &s),
               ET_EFORMAT, "a model's file %s is refused", rows[i].what);
        is_int(et_error_get(cx)->code, ET_E_CHECKPOINT, "as a damaged checkpoint");
        const char *said = take_error(cx);
        ok(strstr(said, rows[i].says) != NULL, "with a sentence: %s", said);
    }
}

/* Of a later etude, which is no damage. */
static void
later(void)
{
    const float one[] = {1, 2};
    struct eti_tensors s;
    save_as(ETI_MANIFEST_FORMAT + 1, 4, one);
    is_int(eti_tensors_open(cx, in_folder("checkpoints/step-000000000004"),
                            ETI_TENSORS_MODEL, &s),
           ET_ENOTSUP, "a checkpoint of the next format is not read");
    is_int(et_error_get(cx)->code, ET_E_CHECKPOINT_FORMAT, "and has a code of its own");
    (void)take_error(cx);
    remove_checkpoint(4);
}

/* A checkpoint is named without its folder. */
static void
named_alone(void)
{
    struct eti_tensors s;
    int here = open(".", O_RDONLY | O_DIRECTORY);
    if (here < 0 || chdir(in_folder("checkpoints")) != 0)
        bail("no folder of checkpoints");
    et_status status = eti_tensors_open(cx, "step-000000000003", ETI_TENSORS_MODEL, &s);
    ok(status == ET_OK && s.manifest.step == 3,
       "a checkpoint of where we are is found");
    if (status == ET_OK)
        eti_tensors_release(&s);
    if (fchdir(here) != 0)
        bail("cannot go back");
    close(here);
}

/* What is converted is a folder of shards; what is written may be a link. */
static void
shards_and_links(void)
{
    static const char index[] =
        "{\"weight_map\":{\"v\":\"one.safetensors\",\"w\":\"two.safetensors\"}}";
    static const char *const shards[] = {"parts/one.safetensors",
                                         "parts/two.safetensors"};
    static const char json[] = "parts/model.safetensors.index.json";
    struct eti_tensors s;
    struct eti_converted done;
    struct stat st;
    mkdir(in_folder("parts"), 0700);
    write_file(json, index, strlen(index), false);
    file_of(shards[0], "{" T("v", "F32", "[2,3]", 0, 24) "}", f32, 24);
    file_of(shards[1], "{" T("w", "F32", "[2,3]", 0, 24) "}", f32, 24);
    need(cx, eti_tensors_open(cx, in_folder("parts"), ETI_TENSORS_ALL, &s));
    is_int(s.n, 2, "the tensors of all shards are there");
    for (int i = 0; i < 2; i++) {
        is_int(eti_tensors_convert(&s, ET_F16, in_folder(shards[i]), &done), ET_EINVAL,
               "shard %d of what is converted is not written", i);
        (void)take_error(cx);
    }
    file_of("real", "{}", "", 0);
    if (symlink("real", in_folder("linked")) != 0)
        bail("no link");
    need(cx, eti_tensors_convert(&s, ET_F16, in_folder("linked"), &done));
    ok(lstat(in_folder("linked"), &st) == 0 && S_ISLNK(st.st_mode) &&
           stat(in_folder("real"), &st) == 0 && st.st_size == done.bytes &&
           done.tensors == 2,
       "what is written to a link is where it leads to");
    eti_tensors_release(&s);
    remove(in_folder("linked"));
    remove(in_folder("real"));
    remove(in_folder(shards[0]));
    remove(in_folder(shards[1]));
    remove(in_folder(json));
    rmdir(in_folder("parts"));
}

int
main(void)
{
    cx = need_ctx();
    opening();
    refusals();
    comparing();
    comparing_pieces();
    converting();
    all_halves();
    metadata();
    targets();
    shards_and_links();
    named_alone();
    later();
    damaged();
    exchanged();
    remove_checkpoint(3);
    remove_checkpoint(12);
    rmdir(in_folder("checkpoints"));
    et_ctx_free(&cx);
    return done();
}
