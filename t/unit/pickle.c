/* SPDX-License-Identifier: Apache-2.0 */
/* The pickles of torch.save, opcode by opcode: what tensors they tell of, and what is
 * refused. Whole files: t/unit/pth.c. */
#include <stdio.h>
#include <string.h>

#include "core/models/pickle.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- pieces ---- */

#define PROTO    "\x80\2"
#define TEXT1(s) "X\1\0\0\0" s
#define TEXT3(s) "X\3\0\0\0" s
#define ONE      "K\1"

/* A storage of KIND called KEY, of COUNT elements. */
#define STORAGE(kind, key, count)                                                      \
    "(X\7\0\0\0storagectorch\n" kind "Storage\n" TEXT1(key) TEXT3("cpu") count "tQ"
#define NO_HOOKS                                                                       \
    "\x89"                                                                             \
    "ccollections\nOrderedDict\n)R"
#define OF(storage, offset, size, stride)                                              \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage offset size stride NO_HOOKS "tR"

/* Two rows of three; others differ in one part. */
#define PLACE(key)           STORAGE("Float", key, "K\6")
#define SIZE                 "K\2K\3\x86"
#define STRIDE               "K\3K\1\x86"
#define TENSOR               OF(PLACE("9"), "K\0", SIZE, STRIDE)
#define COUNTED(count)       OF(STORAGE("Float", "9", count), "K\0", SIZE, STRIDE)
#define OFFSET(offset)       OF(PLACE("9"), offset, SIZE, STRIDE)
#define SHAPED(size, stride) OF(PLACE("9"), "K\0", size, stride)
#define KEPT(key)            OF(PLACE(key), "K\0", SIZE, STRIDE)

#define DICT(items) "}(" items "u"
#define A(tensor)   PROTO DICT(TEXT1("a") tensor) "."
#define READ        "a f32 9/6+0 [2,3] by [3,1];"
#define DAMAGED     "x: the pickle is damaged"

/* ---- what is told ---- */

static const char *
told(const char *bytes, size_t n)
{
    static char text[512];
    struct eti_arena arena;
    struct eti_pickle_tensor *v;
    int64_t count;
    size_t used = 0;
    eti_arena_init(&arena, cx, 1 << 10);
    et_status status = eti_pickle_read(cx, "x", (const uint8_t *)bytes, (int64_t)n,
                                       &arena, &v, &count);
    text[0] = '\0';
    for (int64_t i = 0; i < count && status == ET_OK && used < sizeof text; i++) {
        char shape[80], stride[80];
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s %s %s/%lld+%lld %s by %s;", v[i].name,
            et_dtype_name(v[i].dtype), v[i].storage, (long long)v[i].elements,
            (long long)v[i].offset,
            eti_st_shape_text(v[i].ndim, v[i].shape, shape, sizeof shape),
            eti_st_shape_text(v[i].ndim, v[i].stride, stride, sizeof stride));
    }
    if (status != ET_OK)
        snprintf(text, sizeof text, "%s%s", status == ET_EFORMAT ? "" : "? ",
                 take_error(cx));
    eti_arena_release(&arena);
    return text;
}

struct row {
    const char *what, *bytes;
    size_t n;
    const char *want; /* what is told, or how the refusal begins */
};
#define ROW(what, bytes, want)                                                         \
    {                                                                                  \
        what, bytes, sizeof(bytes) - 1, want                                           \
    }

static const struct row rows[] = {
    ROW("a tensor", A(TENSOR), READ),
    /* numbers */
    ROW("a size of two bytes", A(COUNTED("M\2\1")), "a f32 9/258+0 [2,3] by [3,1];"),
    ROW("one of four bytes", A(COUNTED("J\4\3\2\1")),
        "a f32 9/16909060+0 [2,3] by [3,1];"),
    ROW("a long of no bytes", A(OFFSET("\x8a\0")), READ),
    ROW("a long of two", A(OFFSET("\x8a\2\x80\0")), "a f32 9/6+128 [2,3] by [3,1];"),
    ROW("a long of eight", A(OFFSET("\x8a\10\5\0\0\0\1\0\0\0")),
        "a f32 9/6+4294967301 [2,3] by [3,1];"),
    ROW("a long of nine", A(OFFSET("\x8a\11\5\0\0\0\1\0\0\0\0")), DAMAGED),
    ROW("an offset of -128 in two bytes", A(OFFSET("\x8a\2\x80\xff")), DAMAGED),
    ROW("an offset of -1 in four", A(OFFSET("J\xff\xff\xff\xff")), DAMAGED),
    ROW("a storage of -1", A(COUNTED("J\xff\xff\xff\xff")), DAMAGED),
    ROW("a size of -1", A(SHAPED("K\2J\xff\xff\xff\xff\x86", STRIDE)), DAMAGED),
    ROW("a stride of -1", A(SHAPED(SIZE, "K\3J\xff\xff\xff\xff\x86")), DAMAGED),
    ROW("a truth for an offset", A(OFFSET("\x88")), DAMAGED),
    /* axes */
    ROW("a number", A(SHAPED(")", ")")), "a f32 9/6+0 [] by [];"),
    ROW("one axis", A(SHAPED("K\4\x85", "K\5\x85")), "a f32 9/6+0 [4] by [5];"),
    ROW("three axes", A(SHAPED("K\2K\3K\4\x87", "K\14K\4K\1\x87")),
        "a f32 9/6+0 [2,3,4] by [12,4,1];"),
    ROW("eight axes",
        A(SHAPED("(K\1K\2K\3K\4K\5K\6K\7K\10t", "(K\10K\7K\6K\5K\4K\3K\2K\1t")),
        "a f32 9/6+0 [1,2,3,4,5,6,7,8] by [8,7,6,5,4,3,2,1];"),
    ROW("nine axes",
        A(SHAPED("(" ONE ONE ONE ONE ONE ONE ONE ONE ONE "t",
                 "(" ONE ONE ONE ONE ONE ONE ONE ONE ONE "t")),
        DAMAGED),
    ROW("fewer strides than axes", A(SHAPED(SIZE, "K\3\x85")), DAMAGED),
    ROW("more strides than axes", A(SHAPED("K\2\x85", STRIDE)), DAMAGED),
    /* storages */
    ROW("signed bytes", A(OF(STORAGE("Char", "9", "K\6"), "K\0", SIZE, STRIDE)),
        "x: a tensor is a CharStorage, which is not read"),
    ROW("truths", A(OF(STORAGE("Bool", "9", "K\6"), "K\0", SIZE, STRIDE)),
        "a u8 9/6+0 [2,3] by [3,1];"),
    ROW("what is called otherwise",
        PROTO "(X\7\0\0\0storegectorch\nFloatStorage\n" TEXT1("9")
            TEXT3("cpu") "K\6tQ.",
        DAMAGED),
    ROW("a storage without its size",
        PROTO "(X\7\0\0\0storagectorch\nFloatStorage\n" TEXT1("9") TEXT3("cpu") "tQ.",
        DAMAGED),
    ROW("another function", PROTO "cos\nsystem\n)R.",
        "x: the pickle asks for os.system, which is no tensor"),
    ROW("its name from the stack", "\x80\4\x8c\2os\x8c\6system\x93)R.",
        "x: the pickle asks for os.system, which is no tensor"),
    /* the memo */
    ROW("what was kept at a number of one byte", A(TENSOR "q\7" TEXT1("b") "h\7"),
        READ "b f32 9/6+0 [2,3] by [3,1];"),
    ROW("at one of four",
        A(TENSOR "r\54\1\0\0" TEXT1("b") KEPT("8") "q\54" TEXT1("c") "j\54\1\0\0"),
        READ "b f32 8/6+0 [2,3] by [3,1];c f32 9/6+0 [2,3] by [3,1];"),
    ROW("at a number beyond two bytes",
        A(TENSOR "r\1\0\1\0" TEXT1("b") KEPT("8") "q\1" TEXT1("c") "j\1\0\1\0"),
        READ "b f32 8/6+0 [2,3] by [3,1];c f32 9/6+0 [2,3] by [3,1];"),
    ROW("at several numbers, while there is more and more room",
        A(TENSOR "q\5" TEXT1("b") KEPT("8") "q\11" TEXT1("c")
              KEPT("7") "q\50" TEXT1("d") "h\5" TEXT1("e") "h\11" TEXT1("f") "h\50"),
        READ "b f32 8/6+0 [2,3] by [3,1];c f32 7/6+0 [2,3] by [3,1];"
             "d f32 9/6+0 [2,3] by [3,1];e f32 8/6+0 [2,3] by [3,1];"
             "f f32 7/6+0 [2,3] by [3,1];"),
    ROW("in the order of keeping",
        A(TENSOR "\x94" TEXT1("b") KEPT("8") "\x94" TEXT1("c") "h\0" TEXT1("d") "h\1"),
        READ "b f32 8/6+0 [2,3] by [3,1];c f32 9/6+0 [2,3] by [3,1];"
             "d f32 8/6+0 [2,3] by [3,1];"),
    ROW("what was not kept", A(TENSOR "q\7" TEXT1("b") "h\6"), DAMAGED),
    ROW("what is kept at the last number that there may be",
        A(TENSOR "r\xff\xff\x3f\0"), READ),
    ROW("at the one behind it", A(TENSOR "r\0\0\x40\0"), DAMAGED),
    ROW("a mark that is kept", PROTO "(q\0.", DAMAGED),
    /* dictionaries and lists */
    ROW("an item put in alone", PROTO "}" TEXT1("a") TENSOR "s.", READ),
    ROW("items put in twice",
        PROTO "}(" TEXT1("a") TENSOR "u(" TEXT1("b") KEPT("8") "u.",
        READ "b f32 8/6+0 [2,3] by [3,1];"),
    ROW("a dictionary's own class",
        PROTO "ccollections\nOrderedDict\n)R(" TEXT1("a") TENSOR "u.", READ),
    ROW("its state, left out", PROTO DICT(TEXT1("a") TENSOR) "}b.", READ),
    ROW("state of what is no dictionary", PROTO "]}b.", DAMAGED),
    ROW("state of nothing", PROTO "}b.", DAMAGED),
    ROW("a key without a value", PROTO DICT(TEXT1("a") TENSOR TEXT1("b")) ".", DAMAGED),
    ROW("a value between marks", PROTO "}(" TEXT1("a") "(K\1u.", DAMAGED),
    ROW("items for a list", PROTO "](" TEXT1("a") TENSOR "u.", DAMAGED),
    ROW("items for nothing", PROTO "(" TEXT1("a") TENSOR "u.", DAMAGED),
    ROW("an item for nothing", PROTO TEXT1("a") TENSOR "s.", DAMAGED),
    ROW("an end without a mark", PROTO "}" TEXT1("a") TENSOR "u.", DAMAGED),
    ROW("a mark put in", PROTO "}(K\1s.", DAMAGED),
    ROW("a mark in a pair", PROTO "(K\1\x86.", DAMAGED),
    ROW("a pair of one", PROTO "K\1\x86.", DAMAGED),
    ROW("arguments that are no list", PROTO "ccollections\nOrderedDict\n}R.", DAMAGED),
    ROW("arguments for a dictionary", PROTO "ccollections\nOrderedDict\nK\1\x85R.",
        DAMAGED),
    ROW("lists, numbers and nothings beside tensors",
        PROTO DICT(TEXT1("n") "N" TEXT1("l") "](K\1K\2e" TEXT1("m") "]K\1a" TEXT1(
            "g") "G\77\xf0\0\0\0\0\0\0" TEXT1("a") TENSOR TEXT1("z") "\x88") ".",
        READ),
    ROW("a key that is a number", PROTO DICT("K\1" TENSOR TEXT1("a") TENSOR) ".", READ),
    ROW("a text with a zero in it", PROTO DICT(TEXT3("a\0b") TENSOR) ".", DAMAGED),
    ROW("a frame",
        "\x80\4\x95\1\0\0\0\0\0\0\0" DICT("\x8c\1"
                                          "a" TENSOR) ".",
        READ),
    ROW("an opcode of objects", PROTO "}o.",
        "x: the pickle has the opcode 0x6f, which no state_dict needs"),
    /* where the dictionary is */
    ROW("weights in a checkpoint",
        PROTO DICT("X\12\0\0\0state_dict" DICT(TEXT1("a") TENSOR)) ".", READ),
    ROW("weights by another name",
        PROTO DICT("X\20\0\0\0model_state_dict" DICT(TEXT1("a") TENSOR)) ".", READ),
    ROW("weights of a model", PROTO DICT("X\5\0\0\0model" DICT(TEXT1("a") TENSOR)) ".",
        READ),
    ROW("weights of a module",
        PROTO DICT("X\6\0\0\0module" DICT(TEXT1("a") TENSOR)) ".", READ),
    ROW("those of an optimizer alone",
        PROTO DICT("X\5\0\0\0optim" DICT(TEXT1("a") TENSOR)) ".",
        "x: the pickle has no tensor by name"),
    ROW("a state_dict behind a model",
        PROTO DICT("X\5\0\0\0model" DICT(
            TEXT1("b") KEPT("8")) "X\12\0\0\0state_dict" DICT(TEXT1("a") TENSOR)) ".",
        READ),
    ROW("a tensor beside a state_dict",
        PROTO DICT("X\12\0\0\0state_dict" DICT(TEXT1("b") KEPT("8")) TEXT1("a")
                       TENSOR) ".",
        READ),
    ROW("a model that is no dictionary",
        PROTO DICT("X\5\0\0\0modelN"
                   "X\6\0\0\0module" DICT(TEXT1("a") TENSOR)) ".",
        READ),
    ROW("no tensors", PROTO "}.", "x: the pickle has no tensor by name"),
    ROW("a list of tensors", PROTO "](" TENSOR "e.",
        "x: the pickle is no dictionary of tensors"),
    ROW("nothing", PROTO ".", "x: the pickle is no dictionary of tensors"),
};

static void
opcodes(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        const char *got = told(r->bytes, r->n);
        const bool is_begun =
            r->want[0] == 'x'; /* where it broke off is not said here */
        if (!ok(is_begun ? strncmp(got, r->want, strlen(r->want)) == 0
                         : strcmp(got, r->want) == 0,
                "%s: %.40s", r->what, r->want))
            diag("%s", got);
    }
}

/* No beginning of a pickle is one, and the refusal says how much is left. */
static void
beginnings(void)
{
    static const char whole[] = A(TENSOR "q\7" TEXT1("b") "h\7");
    int wrong = 0;
    for (size_t n = 0; n + 1 < sizeof whole; n++)
        wrong += strncmp(told(whole, n), DAMAGED, strlen(DAMAGED)) != 0;
    is_int(wrong, 0, "no beginning of a pickle is read as one");
    is_str(told(PROTO "}b.", 5), DAMAGED ", 1 bytes before its end",
           "a refusal says how far it came");
}

int
main(void)
{
    cx = need_ctx();
    opcodes();
    beginnings();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
