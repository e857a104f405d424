/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: commands and answers as frames: see wire.h. */
#include "config.h"

#include <string.h>

#include "dist/wire/wire.h"

static const struct {
    const char *name, *key, *value;
} ops[] = {
#define OP_ROW(code, name, key, value) {name, key, value},
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

/* A text of M that fits into SIZE bytes: false for one that does not. */
static bool
get_word(const struct etd_map *m, const char *key, char *out, size_t size)
{
    struct etd_value v;
    etd_get_text(m, key, out, size);
    return !etd_find(m, key, &v) ||
           (v.type == ETD_IS_TEXT && v.n < size && strlen(out) == v.n);
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
    int64_t ttl = etd_get_int(&f->body, "ttl_ms", 0);
    if (ttl < 1 || ttl > ETD_TTL_MS)
        return "ttl_ms outside [1, 60000]";
    out->ttl_ms = (int)ttl;
    out->if_rev = etd_get_int(&f->body, "if_rev", -1);
    if (!etd_find(&f->body, "args", &args) || args.type != ETD_IS_MAP)
        return "no args";
    if (!get_word(&args.map, "key", out->key, ETD_WORD) ||
        !get_word(&args.map, "value", out->value, etd_op_room(out->op)) ||
        !get_word(&f->body, "who", out->who, ETD_WORD))
        return "a text that is too long";
    if (!!ops[out->op].key != !!out->key[0])
        return out->key[0] ? "a key that it does not take" : "no key";
    const char *value = ops[out->op].value;
    if (!value && out->value[0])
        return "a value that it does not take";
    if (value && value[0] != '[' && !out->value[0])
        return "no value";
    return NULL;
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
