/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_file.c: see wandb_file.h. A file is a list of protocol buffers Record, in the
 * frames of LevelDB's log; little endian throughout:
 *
 *     file    ":W&B", 0xbee1 u16, version u8 = 0, then frames
 *     frame   crc32 u32 of type and data (zlib's), length u16, type u8, data
 *     type    1 all of a record, 2 its first part, 3 one in its middle, 4 its last
 *
 * No frame crosses a multiple of 32,768 bytes; fewer than 7 bytes before one are zeros.
 *
 *     Record  1: num  2: history  3: summary  17: run  18: exit  21: header
 *     Run     1: id  2: entity  3: project  4: config {1: item...}  6: group  8: name
 *             14: first step  17: began {1: seconds  2: ns}
 *     History {1: item...  2: step {1: num}}
 *     Summary {1: item...}   Exit {1: code  2: seconds}   item {1: key  16: JSON}
 *
 * Sources: wandb/proto/wandb_internal.proto, wandb/sdk/internal/datastore.py; LevelDB,
 * doc/log_format.md. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "core/loggers/wandb_file.h"

enum { BLOCK = 32768, HEAD = 7, FULL = 1, FIRST, MIDDLE, LAST };

static void
put(struct eti_wandb_file *w, const void *bytes, size_t n)
{
    fwrite(bytes, 1, n, w->file.f);
    w->at += (int64_t)n;
}

static void
put_frame(struct eti_wandb_file *w, int type, const unsigned char *data, size_t n)
{
    unsigned char head[HEAD];
    const unsigned char kind = (unsigned char)type;
    uLong crc = crc32(crc32(0, Z_NULL, 0), &kind, 1);
    if (n > 0)
        crc = crc32(crc, data, (uInt)n);
    eti_pb_fixed(head, crc, 4);
    eti_pb_fixed(head + 4, n, 2);
    head[6] = kind;
    put(w, head, HEAD);
    put(w, data, n);
}

static void
put_record(struct eti_wandb_file *w, const unsigned char *data, size_t n)
{
    static const unsigned char zeros[HEAD] = {0};
    bool is_first = true;
    do {
        size_t left = BLOCK - (size_t)(w->at % BLOCK);
        if (left < HEAD) {
            put(w, zeros, left);
            left = BLOCK;
        }
        const size_t most = left - HEAD, part = n < most ? n : most;
        const bool is_last = part == n;
        put_frame(w, is_first ? (is_last ? FULL : FIRST) : (is_last ? LAST : MIDDLE),
                  data, part);
        data += part;
        n -= part;
        is_first = false;
    } while (n > 0);
}

et_status
eti_wandb_open(struct et_ctx *cx, const char *directory, const char *name,
               struct eti_wandb_file *out)
{
    unsigned char head[HEAD] = {':', 'W', '&', 'B'};
    *out = (struct eti_wandb_file){.file.cx = cx, .record.cx = cx};
    ET_TRY(eti_output_open(cx, directory, name, &out->file));
    eti_pb_fixed(head + 4, 0xbee1, 2);
    put(out, head, HEAD);
    return ET_OK;
}

void
eti_wandb_put(struct eti_wandb_file *w, enum eti_wandb_kind kind,
              struct eti_message *body)
{
    struct eti_message *record = &w->record;
    eti_message_varint(record, 1, (uint64_t)(w->num + 1));
    eti_message_add(record, kind, body);
    if (record->status == ET_OK && w->file.f) {
        put_record(w, record->bytes, record->n);
        w->num++;
    } else if (record->status != ET_OK) {
        et_report(w->file.cx, ET_LOG_WARN, "%s: a record is left out of %s",
                  et_error_get(w->file.cx)->message, w->file.name);
        et_error_clear(w->file.cx);
    }
    eti_message_clear(record);
    eti_message_clear(body);
}

void
eti_wandb_item(struct eti_message *body, int number, const char *key, const char *json)
{
    enum { USUAL = ET_METRIC_NAME + ETI_NUMBER + 16 }; /* bytes of a number's item */
    unsigned char usual[USUAL], *p;
    struct eti_message item = {.cx = body->cx};
    if (strlen(key) + strlen(json) + 16 <= sizeof usual) { /* without an allocation */
        p = eti_pb_bytes(usual, 1, key, strlen(key));
        p = eti_pb_bytes(p, 16, json, strlen(json));
        eti_message_bytes(body, number, usual, (size_t)(p - usual));
        return;
    }
    eti_message_text(&item, 1, key);
    eti_message_text(&item, 16, json);
    eti_message_add(body, number, &item);
    eti_message_release(&item);
}

const char *
eti_wandb_number(double value, char *buf)
{
    const double exact = 9007199254740992; /* 2^53 */
    if (!isfinite(value)) {
        snprintf(buf, ETI_NUMBER, "%s",
                 isnan(value) ? "NaN"
                 : value > 0  ? "Infinity"
                              : "-Infinity");
        return buf;
    }
    const bool is_whole = value == trunc(value) && fabs(value) < exact;
    const int n = is_whole ? eti_put_fixed(buf, value, 0) : eti_put_nine(buf, value);
    buf[n] = '\0';
    return buf;
}

void
eti_wandb_close(struct eti_wandb_file *w)
{
    eti_output_close(&w->file);
    eti_message_release(&w->record);
}
