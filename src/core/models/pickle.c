/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c: see pickle.h. Source: CPython, Lib/pickletools.py (what each opcode does);
 * PyTorch, torch/serialization.py and torch/_utils.py (what a state_dict is made of).
 *
 * A stack of values, a memo of some of them, and the opcodes that torch.save writes for
 * dictionaries, numbers, texts and tensors; any other is refused. A value is made by an
 * opcode, so memory is bounded by the pickle's length. Nothing recurses. */
#include "core/models/pickle.h"

#include <inttypes.h>
#include <string.h>

#include "etude/diagnostic.h"

enum kind {
    NONE,
    BOOL,
    INT,
    FLOAT, /* whose value nobody needs */
    TEXT,
    LIST,           /* and tuples */
    DICT,           /* keys and values by turns */
    ORDERED_DICT,   /* the class */
    REBUILD_TENSOR, /* the function */
    STORAGE_CLASS,  /* I: enum et_dtype; NONE: one that we have not */
    STORAGE,
    TENSOR,
    MARK,
};

struct value {
    enum kind kind;
    int64_t i;        /* BOOL, INT; STORAGE: its elements */
    const char *text; /* TEXT, STORAGE: its name; STORAGE_CLASS */
    enum et_dtype dtype;
    struct value **item; /* LIST, DICT */
    int64_t n, cap;
    const struct eti_pickle_tensor *tensor;
};

struct machine {
    struct et_ctx *cx;
    const char *path;
    struct eti_arena *arena;
    const uint8_t *at, *end;
    struct value **stack, **memo;
    int64_t n_stack, cap_stack, cap_memo, n_memo; /* n_memo: for MEMOIZE */
    bool done;
};

#define REFUSE(m, fmt, ...)                                                            \
    ET_FAIL((m)->cx, ET_EFORMAT, "%s: " fmt, (m)->path, __VA_ARGS__)

static et_status
is_damaged(const struct machine *m)
{
    return REFUSE(m, "the pickle is damaged, %td bytes before its end", m->end - m->at);
}

/* ---- values ---- */

/* Room for one more behind N of *V. */
static et_status
reserve(struct machine *m, struct value ***v, int64_t n, int64_t *cap)
{
    if (n < *cap)
        return ET_OK;
    int64_t more = *cap ? 2 * *cap : 8;
    struct value **now = eti_arena_alloc(m->arena, (size_t)more * sizeof *now);
    if (!now)
        return ET_ENOMEM;
    if (n > 0)
        memcpy(now, *v, (size_t)n * sizeof *now);
    *v = now;
    *cap = more;
    return ET_OK;
}

static et_status
push(struct machine *m, struct value *v)
{
    ET_TRY(reserve(m, &m->stack, m->n_stack, &m->cap_stack));
    m->stack[m->n_stack++] = v;
    return ET_OK;
}

static et_status
push_new(struct machine *m, const struct value *is)
{
    struct value *v = eti_arena_alloc(m->arena, sizeof *v);
    if (!v)
        return ET_ENOMEM;
    *v = *is;
    return push(m, v);
}

static et_status
push_int(struct machine *m, enum kind kind, int64_t i)
{
    return push_new(m, &(struct value){.kind = kind, .i = i});
}

/* The topmost value, which is no mark; NULL: there is none. */
static struct value *
top(const struct machine *m)
{
    struct value *v = m->n_stack > 0 ? m->stack[m->n_stack - 1] : NULL;
    return v && v->kind != MARK ? v : NULL;
}

static struct value *
pop(struct machine *m)
{
    struct value *v = top(m);
    m->n_stack -= v != NULL;
    return v;
}

/* The place of the last mark; -1: there is none. */
static int64_t
find_mark(const struct machine *m)
{
    int64_t i = m->n_stack - 1;
    while (i >= 0 && m->stack[i]->kind != MARK)
        i--;
    return i;
}

static et_status
append(struct machine *m, struct value *to, struct value *item)
{
    ET_TRY(reserve(m, &to->item, to->n, &to->cap));
    to->item[to->n++] = item;
    return ET_OK;
}

/* ---- bytes ---- */

/* N bytes, little-endian; -1 where the pickle ends before. */
static int64_t
take_number(struct machine *m, int n)
{
    uint64_t v = 0;
    if (m->end - m->at < n)
        return -1;
    for (int i = n; i-- > 0;)
        v = v << 8 | m->at[i];
    m->at += n;
    return (int64_t)(v & INT64_MAX);
}

/* N bytes as a text without zeros; NULL: there is none, or memory is out. */
static const char *
take_text(struct machine *m, int64_t n)
{
    if (n < 0 || m->end - m->at < n || memchr(m->at, 0, (size_t)n))
        return NULL;
    char *text = eti_arena_alloc(m->arena, (size_t)n + 1);
    if (text)
        memcpy(text, m->at, (size_t)n);
    m->at += n;
    return text;
}

static const char *
take_line(struct machine *m)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    const char *text = end ? take_text(m, end - m->at) : NULL;
    m->at += text != NULL;
    return text;
}

static et_status
push_text(struct machine *m, int64_t n)
{
    const char *text = take_text(m, n);
    return text ? push_new(m, &(struct value){.kind = TEXT, .text = text})
                : is_damaged(m);
}

/* An integer of N bytes, of two's complement. */
static et_status
push_long(struct machine *m, int64_t n)
{
    uint64_t v = 0;
    if (n < 0 || n > 8 || m->end - m->at < n)
        return is_damaged(m);
    for (int64_t i = n; i-- > 0;)
        v = v << 8 | m->at[i];
    if (n > 0 && n < 8 && m->at[n - 1] & 0x80)
        v |= UINT64_MAX << (8 * n);
    m->at += n;
    return push_int(m, INT, (int64_t)v);
}

/* ---- the names that are known ---- */

static const struct {
    const char *module, *name;
    enum kind kind;
    enum et_dtype dtype;
} globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT, ET_NONE},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, ET_NONE},
    {"torch", "FloatStorage", STORAGE_CLASS, ET_F32},
    {"torch", "DoubleStorage", STORAGE_CLASS, ET_F64},
    {"torch", "HalfStorage", STORAGE_CLASS, ET_F16},
    {"torch", "BFloat16Storage", STORAGE_CLASS, ET_BF16},
    {"torch", "LongStorage", STORAGE_CLASS, ET_I64},
    {"torch", "IntStorage", STORAGE_CLASS, ET_I32},
    {"torch", "ByteStorage", STORAGE_CLASS, ET_U8},
    {"torch", "BoolStorage", STORAGE_CLASS, ET_U8},
    {"torch", "ShortStorage", STORAGE_CLASS, ET_NONE},
    {"torch", "CharStorage", STORAGE_CLASS, ET_NONE},
};

static et_status
push_global(struct machine *m, const char *module, const char *name)
{
    char a[128], b[128];
    if (!module || !name)
        return is_damaged(m);
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (strcmp(globals[i].module, module) == 0 &&
            strcmp(globals[i].name, name) == 0)
            return push_new(m, &(struct value){.kind = globals[i].kind,
                                               .dtype = globals[i].dtype,
                                               .text = globals[i].name});
    et_visible(a, sizeof a, module, strlen(module));
    et_visible(b, sizeof b, name, strlen(name));
    et_status status = REFUSE(m, "the pickle asks for %s.%s, which is no tensor", a, b);
    et_hint(m->cx, "torch.save(model.state_dict(), FILE) saves tensors alone");
    return status;
}

/* ---- tensors ---- */

/* Is V a list of N values that begin with those KINDS? */
static bool
is_tuple(const struct value *v, int64_t least, const enum kind *kinds)
{
    if (!v || v->kind != LIST || v->n < least)
        return false;
    for (int64_t i = 0; i < least; i++)
        if (v->item[i]->kind != kinds[i])
            return false;
    return true;
}

/* ('storage', torch.FloatStorage, '0', 'cpu', elements) */
static et_status
make_storage(struct machine *m)
{
    static const enum kind kinds[] = {TEXT, STORAGE_CLASS, TEXT, TEXT, INT};
    const struct value *v = pop(m);
    if (!is_tuple(v, 5, kinds) || strcmp(v->item[0]->text, "storage") != 0 ||
        v->item[4]->i < 0)
        return is_damaged(m);
    if (v->item[1]->dtype == ET_NONE)
        return REFUSE(m, "a tensor is a %s, which is not read", v->item[1]->text);
    return push_new(m, &(struct value){.kind = STORAGE,
                                       .text = v->item[2]->text,
                                       .dtype = v->item[1]->dtype,
                                       .i = v->item[4]->i});
}

static bool
read_sizes(const struct value *v, int *n, int64_t out[ETI_ST_MAX_DIMS])
{
    if (v->n > ETI_ST_MAX_DIMS)
        return false;
    *n = (int)v->n;
    for (int i = 0; i < *n; i++) {
        if (v->item[i]->kind != INT || v->item[i]->i < 0)
            return false;
        out[i] = v->item[i]->i;
    }
    return true;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, ...) */
static et_status
make_tensor(struct machine *m, const struct value *args)
{
    static const enum kind kinds[] = {STORAGE, INT, LIST, LIST, BOOL, DICT};
    int n_stride;
    struct eti_pickle_tensor *t = eti_arena_alloc(m->arena, sizeof *t);
    if (!t)
        return ET_ENOMEM;
    if (!is_tuple(args, 6, kinds) || args->item[1]->i < 0 ||
        !read_sizes(args->item[2], &t->ndim, t->shape) ||
        !read_sizes(args->item[3], &n_stride, t->stride) || n_stride != t->ndim)
        return is_damaged(m);
    t->storage = args->item[0]->text;
    t->dtype = args->item[0]->dtype;
    t->elements = args->item[0]->i;
    t->offset = args->item[1]->i;
    return push_new(m, &(struct value){.kind = TENSOR, .tensor = t});
}

/* A call of what lies below its arguments. */
static et_status
reduce(struct machine *m)
{
    const struct value *args = pop(m), *callee = args ? pop(m) : NULL;
    if (!callee || args->kind != LIST)
        return is_damaged(m);
    if (callee->kind == REBUILD_TENSOR)
        return make_tensor(m, args);
    if (callee->kind == ORDERED_DICT && args->n == 0)
        return push_int(m, DICT, 0);
    return is_damaged(m);
}

/* ---- opcodes ---- */

static et_status
put_memo(struct machine *m, int64_t i)
{
    /* An index comes with a value, so that there are at most as many as bytes. */
    if (!top(m) || i < 0 || i >= ETI_PICKLE_MAX)
        return is_damaged(m);
    while (i >= m->cap_memo)
        ET_TRY(reserve(m, &m->memo, m->cap_memo, &m->cap_memo));
    m->memo[i] = top(m);
    return ET_OK;
}

static et_status
get_memo(struct machine *m, int64_t i)
{
    if (i < 0 || i >= m->cap_memo || !m->memo[i])
        return is_damaged(m);
    return push(m, m->memo[i]);
}

/* The values above place FROM become a tuple there. */
static et_status
make_tuple(struct machine *m, int64_t from, bool marked)
{
    struct value *v = eti_arena_alloc(m->arena, sizeof *v);
    if (!v)
        return ET_ENOMEM;
    v->kind = LIST;
    if (from < 0)
        return is_damaged(m);
    for (int64_t i = from + marked; i < m->n_stack; i++) {
        if (m->stack[i]->kind == MARK)
            return is_damaged(m);
        ET_TRY(append(m, v, m->stack[i]));
    }
    m->n_stack = from;
    return push(m, v);
}

/* The values above place FROM go into what lies below, which is of KIND. */
static et_status
add_items(struct machine *m, int64_t from, bool marked, enum kind kind)
{
    int64_t first = from + marked;
    if (from < 1 || m->stack[from - 1]->kind != kind ||
        (kind == DICT && (m->n_stack - first) % 2))
        return is_damaged(m);
    for (int64_t i = first; i < m->n_stack; i++) {
        if (m->stack[i]->kind == MARK)
            return is_damaged(m);
        ET_TRY(append(m, m->stack[from - 1], m->stack[i]));
    }
    m->n_stack = from;
    return ET_OK;
}

/* An object's own state, such as a state_dict's versions: left out. */
static et_status
build(struct machine *m)
{
    struct value *state = pop(m);
    return state && top(m) && top(m)->kind == DICT ? ET_OK : is_damaged(m);
}

static et_status
stack_global(struct machine *m)
{
    const struct value *name = pop(m), *module = name ? pop(m) : NULL;
    if (!module || name->kind != TEXT || module->kind != TEXT)
        return is_damaged(m);
    return push_global(m, module->text, name->text);
}

static et_status
skip(struct machine *m, int64_t n, enum kind pushed)
{
    if (m->end - m->at < n)
        return is_damaged(m);
    m->at += n;
    return pushed == FLOAT ? push_int(m, FLOAT, 0) : ET_OK;
}

static et_status
global_lines(struct machine *m)
{
    const char *module = take_line(m);
    return push_global(m, module, module ? take_line(m) : NULL);
}

/* Opcodes of containers and calls; *KNOWN false: it is none of them. */
static et_status
do_container(struct machine *m, uint8_t op, bool *known)
{
    *known = true;
    switch (op) {
    case '}':
        return push_int(m, DICT, 0);
    case ']':
    case ')':
        return push_int(m, LIST, 0);
    case '(':
        return push_int(m, MARK, 0);
    case 't':
        return make_tuple(m, find_mark(m), true);
    case 0x85: /* TUPLE1, TUPLE2, TUPLE3 */
    case 0x86:
    case 0x87:
        return make_tuple(m, m->n_stack - (op - 0x84), false);
    case 's':
        return add_items(m, m->n_stack - 2, false, DICT);
    case 'u':
        return add_items(m, find_mark(m), true, DICT);
    case 'a':
        return add_items(m, m->n_stack - 1, false, LIST);
    case 'e':
        return add_items(m, find_mark(m), true, LIST);
    case 'R':
        return reduce(m);
    case 'b':
        return build(m);
    case 'Q':
        return make_storage(m);
    case 'c':
        return global_lines(m);
    case 0x93:
        return stack_global(m);
    default:
        *known = false;
        return ET_OK;
    }
}

static et_status
do_value(struct machine *m, uint8_t op)
{
    switch (op) {
    case 0x80: /* PROTO */
        return skip(m, 1, NONE);
    case 0x95: /* FRAME */
        return skip(m, 8, NONE);
    case 'N':
        return push_int(m, NONE, 0);
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_int(m, BOOL, op == 0x88);
    case 'J':
        return push_long(m, 4);
    case 'K':
        return push_int(m, INT, take_number(m, 1));
    case 'M':
        return push_int(m, INT, take_number(m, 2));
    case 0x8a: /* LONG1 */
        return push_long(m, take_number(m, 1));
    case 'G':
        return skip(m, 8, FLOAT);
    case 'X':
        return push_text(m, take_number(m, 4));
    case 0x8c: /* SHORT_BINUNICODE */
        return push_text(m, take_number(m, 1));
    case 'q':
        return put_memo(m, take_number(m, 1));
    case 'r':
        return put_memo(m, take_number(m, 4));
    case 0x94: /* MEMOIZE */
        return put_memo(m, m->n_memo++);
    case 'h':
        return get_memo(m, take_number(m, 1));
    case 'j':
        return get_memo(m, take_number(m, 4));
    case '.':
        m->done = true;
        return ET_OK;
    default:
        return REFUSE(m, "the pickle has the opcode 0x%02x, which no state_dict needs",
                      op);
    }
}

static et_status
run(struct machine *m)
{
    while (!m->done) {
        bool known;
        if (m->at == m->end)
            return is_damaged(m);
        uint8_t op = *m->at++;
        ET_TRY(do_container(m, op, &known));
        if (!known)
            ET_TRY(do_value(m, op));
    }
    return ET_OK;
}

/* ---- what has been read ---- */

static int64_t
count_tensors(const struct value *dict)
{
    int64_t n = 0;
    for (int64_t i = 0; i < dict->n; i += 2)
        n += dict->item[i]->kind == TEXT && dict->item[i + 1]->kind == TENSOR;
    return n;
}

/* The dictionary of tensors: this one, or what it calls its model. */
static const struct value *
find_state(const struct value *dict)
{
    static const char *const names[] = {"state_dict", "model_state_dict", "model",
                                        "module", NULL};
    if (count_tensors(dict) > 0)
        return dict;
    for (const char *const *name = names; *name; name++)
        for (int64_t i = 0; i < dict->n; i += 2)
            if (dict->item[i]->kind == TEXT && dict->item[i + 1]->kind == DICT &&
                strcmp(dict->item[i]->text, *name) == 0)
                return dict->item[i + 1];
    return dict;
}

static et_status
list_tensors(struct machine *m, struct eti_pickle_tensor **out, int64_t *count)
{
    const struct value *dict = top(m);
    int64_t n = 0;
    if (!dict || dict->kind != DICT)
        return REFUSE(m, "the pickle is no dictionary of %s", "tensors");
    dict = find_state(dict);
    *count = count_tensors(dict);
    *out = eti_arena_alloc(m->arena, ((size_t)*count + 1) * sizeof **out);
    if (!*out)
        return ET_ENOMEM;
    for (int64_t i = 0; i < dict->n; i += 2) {
        if (dict->item[i]->kind != TEXT || dict->item[i + 1]->kind != TENSOR)
            continue;
        (*out)[n] = *dict->item[i + 1]->tensor;
        (*out)[n++].name = dict->item[i]->text;
    }
    return n ? ET_OK : REFUSE(m, "the pickle has no %s", "tensor by name");
}

et_status
eti_pickle_read(struct et_ctx *cx, const char *path, const uint8_t *bytes, int64_t n,
                struct eti_arena *arena, struct eti_pickle_tensor **out, int64_t *count)
{
    struct machine m = {
        .cx = cx, .path = path, .arena = arena, .at = bytes, .end = bytes + n};
    *out = NULL;
    *count = 0;
    ET_TRY(run(&m));
    return list_tensors(&m, out, count);
}
