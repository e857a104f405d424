/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: commands and answers as frames: see wire.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "dist/wire/errors.h"
#include "dist/wire/wire.h"

static const struct {
    const char *name, *key, *value, *help;
} ops[] = {
#define OP_ROW(code, name, key, value, help) {name, key, value, help},
    ETD_OP_MAP(OP_ROW)
#undef OP_ROW
};

const char *
etd_op_name(enum etd_op op)
{
    return op < ETD_OP_COUNT ? ops[op].name : "?";
}

enum etd_op
etd_op_of(const char *name)
{
    int op = 0;
    while (op < ETD_OP_COUNT && strcmp(ops[op].name, name) != 0)
        op++;
    return (enum etd_op)op;
}

void
etd_op_words(enum etd_op op, const char **key, const char **value, const char **help)
{
    *key = ops[op].key;
    *value = ops[op].value;
    *help = ops[op].help;
}

bool
etd_op_rejects(enum etd_op op, int code)
{
    switch (code) {
    case ETD_E_ARGUMENT:
    case ETD_E_RATE:
    case ETD_E_ROLE:
    case ETD_E_FULL:
        return true;
    case ETD_E_OTHER_RUN:
    case ETD_E_REVISION:
        return op < ETD_OP_COUNT;
    case ETD_E_LEASE:
        return op < ETD_OP_COUNT && op != ETD_OP_ANNOTATE;
    case ETD_E_NOT_YET:
        return op == ETD_OP_ALGO;
    default:
        return false;
    }
}

size_t
etd_command_write(void *bytes, size_t room, const struct etd_head *head,
                  const struct etd_command *c)
{
    struct etd_head h = *head;
    struct etd_out o;
    bool has_key = c->key[0], has_value = c->value[0], has_who = c->who[0];
    h.kind = ETD_CMD;
    etd_begin(&o, bytes, room, &h, 4 + (c->if_rev >= 0) + has_who);
    etd_put_bin(&o, "id", c->id, ETD_CMD_ID);
    etd_put_text(&o, "op", etd_op_name(c->op));
    etd_put_int(&o, "ttl_ms", c->ttl_ms);
    etd_put_map(&o, "args", has_key + has_value);
    if (has_key)
        etd_put_text(&o, "key", c->key);
    if (has_value)
        etd_put_text(&o, "value", c->value);
    if (c->if_rev >= 0)
        etd_put_int(&o, "if_rev", c->if_rev);
    if (has_who)
        etd_put_text(&o, "who", c->who);
    return etd_end(&o);
}

size_t
etd_op_room(enum etd_op op)
{
    return op == ETD_OP_ANNOTATE ? ETD_NOTE : ETD_WORD;
}

/* A text of M of less than SIZE bytes, or none. NULL, or what is wrong with it. */
static const char *
get_word(const struct etd_map *m, const char *key, char *out, size_t size)
{
    struct etd_value v;
    etd_get_text(m, key, out, size);
    if (!etd_find(m, key, &v))
        return NULL;
    if (v.type != ETD_IS_TEXT)
        return "key and value are texts: \"0.05\", not 0.05";
    return v.n < size && strlen(out) == v.n ? NULL : "a text that is too long";
}

/* A whole number of M: an integer, or a double without a fraction. */
static bool
get_whole(const struct etd_map *m, const char *key, int64_t *out)
{
    struct etd_value v;
    double d = etd_get_double(m, key, NAN);
    if (etd_find(m, key, &v) && v.type == ETD_IS_INT)
        *out = v.i;
    else if (fabs(d) < 0x1p53 && d == trunc(d))
        *out = (int64_t)d;
    else
        return false;
    return true;
}

/* What is wrong with the numbers of a command. */
static const char *
read_numbers(const struct etd_map *body, struct etd_command *out)
{
    struct etd_value v;
    int64_t ttl = 0;
    if (!etd_find(body, "ttl_ms", &v))
        return "no ttl_ms";
    if (!get_whole(body, "ttl_ms", &ttl))
        return "ttl_ms is no whole number";
    if (ttl < 1 || ttl > ETD_TTL_MS)
        return "ttl_ms outside [1, 60000]";
    out->ttl_ms = (int)ttl;
    if (!etd_find(body, "if_rev", &v))
        return NULL;
    if (!get_whole(body, "if_rev", &out->if_rev))
        return "if_rev is no whole number";
    return out->if_rev < 0 ? "if_rev below 0" : NULL;
}

/* Are key and value there where the operation takes them, and only there? */
static const char *
check_words(const struct etd_command *c)
{
    const char *value = ops[c->op].value;
    if (!!ops[c->op].key != !!c->key[0])
        return c->key[0] ? "a key that it does not take" : "no key";
    if (!value && c->value[0])
        return "a value that it does not take";
    return value && value[0] != '[' && !c->value[0] ? "no value" : NULL;
}

const char *
etd_command_read(const struct etd_frame *f, struct etd_command *out)
{
    char op[ETD_WORD];
    struct etd_value args;
    *out = (struct etd_command){.op = ETD_OP_COUNT, .if_rev = -1};
    if (!etd_get_id(&f->body, "id", out->id, ETD_CMD_ID))
        return "no id of 16 bytes";
    out->op = etd_op_of(etd_get_text(&f->body, "op", op, sizeof op));
    if (out->op == ETD_OP_COUNT)
        return "no such operation";
    const char *wrong = read_numbers(&f->body, out);
    if (wrong)
        return wrong;
    if (!etd_find(&f->body, "args", &args) || args.type != ETD_IS_MAP)
        return "no args";
    wrong = get_word(&args.map, "key", out->key, ETD_WORD);
    if (!wrong)
        wrong = get_word(&args.map, "value", out->value, etd_op_room(out->op));
    if (!wrong)
        wrong = get_word(&f->body, "who", out->who, ETD_WORD);
    return wrong ? wrong : check_words(out);
}

size_t
etd_answer_write(void *bytes, size_t room, const struct etd_head *head,
                 const struct etd_answer *a)
{
    struct etd_head h = *head;
    struct etd_out o;
    bool is_applied = a->kind == ETD_APPLIED, has_text = a->text[0];
    bool is_rejected = a->kind == ETD_REJECTED;
    h.kind = a->kind;
    etd_begin(&o, bytes, room, &h, 1 + 2 * is_applied + is_rejected + has_text);
    etd_put_bin(&o, "id", a->id, ETD_CMD_ID);
    if (is_applied) {
        etd_put_int(&o, "step", a->step);
        etd_put_int(&o, "rev", a->rev);
    }
    if (is_rejected)
        etd_put_int(&o, "code", a->code);
    if (has_text)
        etd_put_text(&o, "text", a->text);
    return etd_end(&o);
}

bool
etd_answer_read(const struct etd_frame *f, struct etd_answer *out)
{
    *out = (struct etd_answer){
        .kind = f->head.kind,
        .step = etd_get_int(&f->body, "step", 0),
        .rev = etd_get_int(&f->body, "rev", 0),
        .code = (int)etd_get_int(&f->body, "code", 0),
    };
    etd_get_text(&f->body, "text", out->text, sizeof out->text);
    return etd_get_id(&f->body, "id", out->id, ETD_CMD_ID) &&
           (out->kind == ETD_RECEIVED || out->kind == ETD_APPLIED ||
            out->kind == ETD_REJECTED || out->kind == ETD_EXPIRED);
}
