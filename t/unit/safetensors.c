/* SPDX-License-Identifier: Apache-2.0 */
/* Weight files: a round trip, every dtype, and a refusal for every lie. */
#include "core/models/safetensors.h"
#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;

/* ---- the header ---- */

/* Parses TEXT before DATA bytes; the sentence it is refused with, or "". */
static const char *
refusal(const char *text, int64_t data, struct eti_st_header *out)
{
    struct eti_st_header h;
    et_status status = eti_st_parse(cx, "x", text, (int64_t)strlen(text), data,
                                    &eti_st_limits, out ? out : &h);
    if (status != ET_OK)
        return take_error(cx);
    if (!out)
        eti_st_release(&h);
    return "";
}

static void
headers(void)
{
    struct eti_st_header h;
    is_str(refusal("{\"__metadata__\":{\"format\":\"pt\"},"
                   "\"b\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[8,16]},"
                   "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}   ",
                   16, &h),
           "", "a header with metadata, a number and padding is read");
    is_int(h.n, 2, "it has two tensors");
    is_str(h.v[0].name, "a", "they come in the order of their data");
    ok(h.v[1].dtype == ET_F16 && h.v[1].ndim == 2 && h.v[1].shape[1] == 2,
       "with their dtypes and shapes");
    eti_st_release(&h);
    is_str(refusal("{}", 0, NULL), "", "no tensors at all are read");
    is_str(refusal("{\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
                   "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
                   4, NULL),
           "", "an empty tensor needs no place of its own");
}

#define T(name, dtype, shape, begin, end)                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                           \
    ",\"data_offsets\":[" #begin "," #end "]}"

static void
lies(void)
{
    static const struct {
        const char *text;
        int64_t data;
        const char *want;
    } table[] = {
        {"", 0, "x: header does not begin with '{'"},
        {"[]", 0, "x: header does not begin with '{'"},
        {" {}", 0, "x: header does not begin with '{'"},
        {"{", 0, "x: header is not JSON, byte 1"},
        {"{} x", 0, "x: header is not JSON, byte 4"},
        {"{\"a\":1e999}", 0, "x: header is not JSON, byte 10"},
        {"{\"\xff\":1}", 0, "x: header is not UTF-8, byte 2"},
        {"{\"a\":1}", 0, "x: tensor 'a' is not {dtype, shape, data_offsets}"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0,
         "x: tensor 'a' is not {dtype, shape, data_offsets}"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"z\":0}}", 4,
         "x: tensor 'a' is not {dtype, shape, data_offsets}"},
        {"{" T("a", "F32", "[1]", 0, 4) "," T("a", "F32", "[1]", 0, 4) "}", 4,
         "x: header: a key comes twice, byte 57"},
        {"{" T("", "F32", "[1]", 0, 4) "}", 4,
         "x: a tensor's name is empty, longer than 511 bytes or unprintable"},
        {"{" T("\\u001b[2J", "F32", "[1]", 0, 4) "}", 4,
         "x: a tensor's name is empty, longer than 511 bytes or unprintable"},
        {"{" T("a", "F8_E4M3", "[4]", 0, 4) "}", 4,
         "x: tensor 'a' has unknown dtype 'F8_E4M3'"},
        {"{" T("a", "", "[4]", 0, 4) "}", 4, "x: tensor 'a' has unknown dtype ''"},
        {"{" T("a", "F32", "4", 0, 4) "}", 4,
         "x: tensor 'a': shape is not at most 8 sizes"},
        {"{" T("a", "F32", "[-1]", 0, 4) "}", 4,
         "x: tensor 'a': shape is not at most 8 sizes"},
        {"{" T("a", "F32", "[1.0]", 0, 4) "}", 4,
         "x: tensor 'a': shape is not at most 8 sizes"},
        {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4,
         "x: tensor 'a': shape is not at most 8 sizes"},
        {"{" T("a", "F32", "[1]", 4, 0) "}", 4,
         "x: tensor 'a': data_offsets are not [begin, end]"},
        {"{" T("a", "F32", "[1]", -4, 0) "}", 4,
         "x: tensor 'a': data_offsets are not [begin, end]"},
        {"{" T("a", "F32", "[4611686018427387904,4]", 0, 4) "}", 4,
         "x: tensor 'a' f32[4611686018427387904,4] overflows"},
        {"{" T("a", "F32", "[2]", 0, 4) "}", 4,
         "x: tensor 'a' f32[2] is 8 bytes, not [0,4)"},
        {"{" T("v", "U8", "[100]", 0, 100) "," T("w", "U8", "[40]", 80, 120) "}", 120,
         "x: tensor 'w' [80,120) overlaps 'v'"},
        {"{" T("v", "U8", "[4]", 0, 4) "," T("w", "U8", "[4]", 0, 4) "}", 4,
         "x: tensor 'w' [0,4) overlaps 'v'"},
        {"{" T("v", "U8", "[4]", 4, 8) "}", 8, "x: bytes [0,4) belong to no tensor"},
        {"{" T("v", "U8", "[4]", 0, 4) "," T("w", "U8", "[4]", 6, 10) "}", 10,
         "x: bytes [4,6) belong to no tensor"},
        {"{" T("v", "U8", "[4]", 0, 4) "}", 8, "x: bytes [4,8) belong to no tensor"},
        {"{" T("v", "U8", "[8]", 0, 8) "}", 4,
         "x: tensor 'v' [0,8) ends past the 4 bytes of data"},
        {"{\"__metadata__\":{\"a\":1}}", 0,
         "x: __metadata__ is not an object of strings"},
        {"{\"__metadata__\":[]}", 0, "x: __metadata__ is not an object of strings"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_str(refusal(table[i].text, table[i].data, NULL), table[i].want,
               "lie %zu is told", i);
}

static void
too_large(void)
{
    uint8_t prefix[ETI_ST_PREFIX] = {0};
    int64_t n;
    const struct eti_st_limits one = {.header_bytes = 4096, .tensors = 1};
    struct eti_st_header h;
    const char two[] = "{" T("v", "U8", "[1]", 0, 1) "," T("w", "U8", "[1]", 1, 2) "}";
    memset(prefix, 0xff, sizeof prefix);
    ok(eti_st_header_bytes(cx, "x", prefix, 100, &eti_st_limits, &n) == ET_EFORMAT,
       "a header of 2^64 - 1 bytes is refused");
    is_str(take_error(cx), "x: header of 18446744073709551615 bytes exceeds 16.0 MiB",
           "with its size");
    memset(prefix, 0, sizeof prefix);
    prefix[0] = 93;
    ok(eti_st_header_bytes(cx, "x", prefix, 100, &eti_st_limits, &n) == ET_EFORMAT,
       "so is one past the end of the file");
    is_str(take_error(cx), "x: header of 93 bytes, file has 100", "with both sizes");
    prefix[0] = 92;
    ok(eti_st_header_bytes(cx, "x", prefix, 100, &eti_st_limits, &n) == ET_OK &&
           n == 92,
       "one that ends with the file is not");
    ok(eti_st_parse(cx, "x", two, sizeof two - 1, 2, &one, &h) == ET_EFORMAT,
       "more tensors than the limit are refused");
    is_str(take_error(cx), "x: header of more than 1 tensors", "with the limit");
    char commas[64];
    memset(commas, ',', sizeof commas);
    commas[0] = '{';
    ok(eti_st_parse(cx, "x", commas, sizeof commas, 2, &one, &h) == ET_EFORMAT,
       "so is what could only be more, before it takes memory");
    is_str(take_error(cx), "x: header of more than 1 tensors", "with the limit");
}

/* ---- files ---- */

/* A linear layer 3 -> 2: fc.weight [2,3], fc.bias [2]. */
static struct et_model *
make_model(void)
{
    const struct et_model_class *c = et_model_class_find("mlp");
    const struct et_model_facts facts = {.channels = 3, .num_classes = 2};
    struct et_model *m;
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    need(cx, et_options_set(cx, c->info.options, options, "layers", "0"));
    need(cx, et_model_new(cx, c, options, &facts, &m));
    et_options_release(c->info.options, options);
    et_free(cx, options);
    return m;
}

/* Writes a file of HEADER and DATA; its path. */
static const char *
file_of(const char *name, const char *header, const void *data, size_t n)
{
    static uint8_t bytes[4096];
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, data, n);
    return write_file(name, bytes, 8 + length + n, false);
}

static void
read_linear(struct et_model *m, float weight[6], float bias[2])
{
    need(cx, et_model_get_param(m, "fc.weight", 0, weight, 6));
    need(cx, et_model_get_param(m, "fc.bias", 0, bias, 2));
}

#define BIAS T("fc.bias", "F32", "[2]", 0, 8)
static const float zeros[64];

static void
dtypes(void)
{
    static const float f32[] = {0, 1, -1, 0.5f, 256, -0.25f};
    static const double f64[] = {0, 1, -1, 0.5, 256, -0.25};
    static const uint16_t f16[] = {0, 0x3c00, 0xbc00, 0x3800, 0x5c00, 0xb400};
    static const uint16_t bf16[] = {0, 0x3f80, 0xbf80, 0x3f00, 0x4380, 0xbe80};
    static const int64_t i64[] = {0, 1, -1, 5, 256, -7};
    static const float whole[] = {0, 1, -1, 5, 256, -7};
    static const struct {
        const char *header;
        const void *data;
        size_t bytes;
        const float *want;
    } table[] = {
        {"{" BIAS "," T("fc.weight", "F32", "[2,3]", 8, 32) "}", f32, sizeof f32, f32},
        {"{" BIAS "," T("fc.weight", "F64", "[2,3]", 8, 56) "}", f64, sizeof f64, f32},
        {"{" BIAS "," T("fc.weight", "F16", "[2,3]", 8, 20) "}", f16, sizeof f16, f32},
        {"{" BIAS "," T("fc.weight", "BF16", "[2,3]", 8, 20) "}", bf16, sizeof bf16,
         f32},
        {"{" BIAS "," T("fc.weight", "I64", "[2,3]", 8, 56) "}", i64, sizeof i64,
         whole},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct et_model *m = make_model();
        uint8_t data[64] = {0};
        float weight[6], bias[2];
        memcpy(data + 8, table[i].data, table[i].bytes);
        need(cx, et_model_load_weights(
                     cx, m, file_of("t", table[i].header, data, 8 + table[i].bytes)));
        read_linear(m, weight, bias);
        ok(memcmp(weight, table[i].want, sizeof weight) == 0 && bias[0] == 0 &&
               bias[1] == 0,
           "weights of dtype %zu have their exact values", i);
        et_model_free(&m);
    }
}

static void
halves(void)
{
    static const uint16_t f16[] = {0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0x8000};
    static const float want[] = {0x1p-24f, 0x1.ff8p-15f, 0x1p-14f,
                                 65504,    1 / 0.0f,     -0.0f};
    struct et_model *m = make_model();
    uint8_t data[20] = {0};
    float weight[6], bias[2];
    memcpy(data + 8, f16, sizeof f16);
    need(cx, et_model_load_weights(
                 cx, m,
                 file_of("t", "{" BIAS "," T("fc.weight", "F16", "[2,3]", 8, 20) "}",
                         data, sizeof data)));
    read_linear(m, weight, bias);
    ok(memcmp(weight, want, sizeof want) == 0,
       "smallest, largest and infinite halves have their exact values");
    et_model_free(&m);
}

#define WEIGHT T("fc.weight", "F32", "[2,3]", 8, 32)

static void
misfits(void)
{
    static const struct {
        const char *name, *header;
        size_t bytes;
        const char *want; /* after the path; NULL: it loads */
    } table[] = {
        {"m.safetensors", "{" BIAS "," WEIGHT "}", 32, NULL},
        {"m.safetensors",
         "{" BIAS "," WEIGHT "," T("bn.num_batches_tracked", "I64", "[]", 32, 40) "}",
         40, NULL},
        {"m.safetensors",
         "{" BIAS "," WEIGHT "," T("h.attn.bias", "U8", "[1]", 32, 33) "}", 33, NULL},
        {"m.safetensors",
         "{" BIAS "," WEIGHT "," T("h.cattn.bias", "U8", "[1]", 32, 33) "}", 33,
         ": 'h.cattn.bias' is not in the model"},
        {"m.safetensors", "{" BIAS "}", 8,
         ": 'fc.weight' is missing, model wants [2,3]"},
        {"m.safetensors", "{" BIAS "," T("fc.weight", "F32", "[3,2]", 8, 32) "}", 32,
         ": 'fc.weight' is [3,2], model wants [2,3]"},
        {"m.safetensors", "{" BIAS "," T("fc.weight", "F32", "[6]", 8, 32) "}", 32,
         ": 'fc.weight' is [6], model wants [2,3]"},
        {"m.safetensors", "{" T("fc.bias", "F32", "[2,1]", 0, 8) "," WEIGHT "}", 32,
         ": 'fc.bias' is [2,1], model wants [2]"},
        {"m.safetensors", "{}", 0,
         ": 'fc.weight' is missing, model wants [2,3] (and 1 more that do not fit)"},
        {"m.safetensors", "{}", 9, ": bytes [0,9) belong to no tensor"},
        {"m.safetensors", "{" BIAS "," WEIGHT "}", 31,
         ": tensor 'fc.weight' [8,32) ends past the 31 bytes of data"},
        {"m.safetensors", "{" BIAS "," WEIGHT "}", 33,
         ": bytes [32,33) belong to no tensor"},
        {"m.pt", "{" BIAS "," WEIGHT "}", 32, NULL},
        {"m.pt", "zip", 32, " is a pickle; convert it to safetensors elsewhere"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct et_model *m = make_model();
        char want[4200] = "";
        float was[6], is[6], bias[2];
        const char *path =
            file_of(table[i].name, table[i].header, zeros, table[i].bytes);
        read_linear(m, was, bias);
        et_status status = et_model_load_weights(cx, m, path);
        read_linear(m, is, bias);
        if (table[i].want)
            snprintf(want, sizeof want, "%s%s", path, table[i].want);
        is_str(status == ET_OK ? "" : take_error(cx), want, "file %zu is %s", i,
               table[i].want ? "refused" : "read");
        ok((memcmp(was, is, sizeof was) == 0) == (table[i].want != NULL),
           "and the model is %s", table[i].want ? "as before" : "changed");
        et_model_free(&m);
    }
}

static void
refused_files(void)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t n;
        et_status status;
        const char *want;
    } table[] = {
        {"m.safetensors", "PK\3\4 and so on", 14, ET_EFORMAT, "the archive has no end"},
        {"m.safetensors", "\x80\x02}q.", 5, ET_EFORMAT, "is a pickle"},
        {"m.ckpt", "", 0, ET_EFORMAT, "is a pickle"},
        {"m.pt", "", 0, ET_EFORMAT, "is a pickle"},
        {"m.pth", "", 0, ET_EFORMAT, "is a pickle"},
        {"m.bin", "", 0, ET_EFORMAT, "is a pickle"},
        {"m.pkl", "", 0, ET_EFORMAT, "is a pickle"},
        {"m.safetensors", "", 0, ET_EFORMAT, "0 bytes are too few for safetensors"},
        {"m.safetensors", "\2\0\0\0\0\0\0", 7, ET_EFORMAT, "7 bytes are too few"},
        {"m.safetensors", "\2\0\0\0\0\0\0\0", 8, ET_EFORMAT,
         "header of 2 bytes, file has 8"},
        {"m.safetensors", "\0\0\0\0\0\0\0\0", 8, ET_EFORMAT, "does not begin with '{'"},
    };
    struct et_model *m = make_model();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = write_file(table[i].name, table[i].bytes, table[i].n, false);
        et_status status = et_model_load_weights(cx, m, path);
        const char *said = take_error(cx);
        ok(status == table[i].status && strstr(said, table[i].want),
           "file %zu is refused: %s", i, table[i].want);
    }
    ok(et_model_load_weights(cx, m, "/nowhere/m.safetensors") == ET_ENOENT,
       "a file that is not there is not found");
    et_error_clear(cx);
    ok(et_model_load_weights(cx, m, scratch_folder()) == ET_EFORMAT,
       "a folder without weights is refused");
    is_int(strstr(take_error(cx), "holds no model.safetensors") != NULL, 1,
           "and what it lacks is said");
    et_model_free(&m);
}

/* ---- a round trip ---- */

static struct et_model *
make_resnet(void)
{
    const struct et_model_class *c = et_model_class_find("resnet8");
    const struct et_model_facts facts = {
        .channels = 3,
        .height = 8,
        .width = 8,
        .num_classes = 10,
    };
    struct et_model *m;
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    need(cx, et_model_new(cx, c, options, &facts, &m));
    et_options_release(c->info.options, options);
    et_free(cx, options);
    return m;
}

/* Leaves whose values (as drawn by SEED where there are none) differ between A and
 * B. */
static int
differing(struct et_model *a, struct et_model *b, uint32_t seed)
{
    struct et_leaves l;
    int n = 0;
    need(cx, et_module_leaves(cx, a->root, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++) {
        int64_t count = et_desc_count(&l.v[i].param->desc);
        float *x, *y;
        need(cx, et_alloc(cx, (size_t)count * sizeof *x, (void **)&x));
        need(cx, et_alloc(cx, (size_t)count * sizeof *y, (void **)&y));
        need(cx, et_model_get_param(a, l.v[i].name, seed, x, count));
        need(cx, et_model_get_param(b, l.v[i].name, seed + 1, y, count));
        n += memcmp(x, y, (size_t)count * sizeof *x) != 0;
        et_free(cx, x);
        et_free(cx, y);
    }
    et_leaves_release(&l);
    return n;
}

static void
round_trip(void)
{
    enum { SEED = 3 };
    char path[4200];
    struct et_device *dev;
    struct et_model *a = make_resnet(), *b = make_resnet();
    snprintf(path, sizeof path, "%s", write_file("r.safetensors", "old", 3, false));
    need(cx, et_device_open(cx, "ref", 0, 1, &dev));
    ok(differing(a, b, SEED) > 0, "two seeds give two models");
    /* A's filters lie channels-last on its device, B's are not bound when they are
     * read. */
    need(cx, et_module_bind(cx, a->root, dev, ET_PARAM | ET_BUFFER, SEED));
    need(cx, et_model_save_weights(cx, a, SEED, path));
    need(cx, et_model_load_weights(cx, b, path));
    is_int(differing(a, b, SEED), 0, "a saved model that is loaded has the same bits");
    et_model_free(&b);
    b = make_resnet();
    need(cx, et_module_bind(cx, b->root, dev, ET_PARAM | ET_BUFFER, SEED + 1));
    need(cx, et_model_load_weights(cx, b, path));
    is_int(differing(a, b, SEED), 0, "also into one whose parameters are bound");
    et_model_free(&a);
    et_model_free(&b);
    a = make_model();
    ok(et_model_load_weights(cx, a, path) == ET_EFORMAT, "another model's are refused");
    et_error_clear(cx);
    ok(et_model_save_weights(cx, a, 0, "/nowhere/m.safetensors") == ET_EIO,
       "a folder that is not there cannot be saved to");
    is_int(strncmp(take_error(cx), "cannot write /nowhere/m.safetensors", 35), 0,
           "and that is said");
    et_model_free(&a);
    et_device_close(&dev);
}

/* Python reads the file with struct and json alone: another pair of eyes. */
static void
python(void)
{
    static const char script[] =
        "python3 -c '\n"
        "import struct, json, sys\n"
        "b = open(sys.argv[1], \"rb\").read()\n"
        "n, = struct.unpack(\"<Q\", b[:8])\n"
        "h = json.loads(b[8:8 + n])\n"
        "assert n %% 8 == 0 and h.pop(\"__metadata__\") == {\"format\": \"pt\"}\n"
        "w = h[\"fc.weight\"]\n"
        "assert w[\"dtype\"] == \"F32\" and w[\"shape\"] == [2, 3]\n"
        "x, y = w[\"data_offsets\"]\n"
        "assert struct.unpack(\"<6f\", b[8 + n + x:8 + n + y]) == (1, 2, 3, 4, 5, 6)\n"
        "assert len(h) == 2 and len(b) == 8 + n + 4 * 8\n"
        "' '%s'";
    static const float weight[] = {1, 2, 3, 4, 5, 6};
    char path[4200], command[8192];
    if (system("python3 -c 'import struct, json' 2>/dev/null") != 0) {
        skip(1, "there is no python3");
        return;
    }
    struct et_model *m = make_model();
    snprintf(path, sizeof path, "%s", write_file("p.safetensors", "", 0, false));
    need(cx, et_model_set_param(m, "fc.weight", weight, 6));
    need(cx, et_model_save_weights(cx, m, 0, path));
    snprintf(command, sizeof command, script, path);
    ok(system(command) == 0, "Python reads a saved file by the format's description");
    et_model_free(&m);
}

/* The K-th allocation fails, for every K: nothing leaks, and then it works. */
static void
out_of_memory(void)
{
    char path[4200];
    struct et_model *m = make_model();
    struct et_alloc_stats before, after;
    int failures = 0;
    snprintf(path, sizeof path, "%s", write_file("o.safetensors", "", 0, false));
    et_alloc_get_stats(cx, &before);
    for (uint64_t k = 1;; k++) {
        et_alloc_fail_at(cx, k);
        et_status status = et_model_save_weights(cx, m, 0, path);
        et_alloc_fail_at(cx, 0);
        if (status == ET_OK)
            break;
        failures += status == ET_ENOMEM;
        et_error_clear(cx);
    }
    et_alloc_get_stats(cx, &after);
    ok(failures > 4 && after.live == before.live,
       "no failed allocation of %d leaks while saving", failures);
    failures = 0;
    for (uint64_t k = 1;; k++) {
        struct et_model *other = make_model();
        et_alloc_fail_at(cx, k);
        et_status status = et_model_load_weights(cx, other, path);
        et_alloc_fail_at(cx, 0);
        et_model_free(&other);
        if (status == ET_OK)
            break;
        failures += status == ET_ENOMEM;
        et_error_clear(cx);
    }
    et_alloc_get_stats(cx, &after);
    ok(failures > 4 && after.live == before.live,
       "no failed allocation of %d leaks while loading", failures);
    et_model_free(&m);
}

int
main(void)
{
    cx = need_ctx();
    headers();
    lies();
    too_large();
    dtypes();
    halves();
    misfits();
    refused_files();
    round_trip();
    python();
    out_of_memory();
    et_ctx_free(&cx);
    return done();
}
