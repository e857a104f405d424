/* SPDX-License-Identifier: Apache-2.0 */
/* tfevents.c: see tfevents.h. A file is a list of TFRecords, each a protocol buffer
 * Event; little endian throughout:
 *
 *     record  length u64, masked crc32c of the length u32, data, that of the data u32
 *     masked  (crc >> 15 | crc << 17) + 0xa282ead8
 *     Event   1: wall_time double  2: step int64  3: file_version  5: Summary
 *             7: SessionLog {1: status; START = 1}
 *     Summary 1: Value {1: tag  2: simple_value float  8: tensor  9: metadata}, which
 *             may be there several times
 *
 * A text is a tensor {1: dtype 7 = string  2: shape, empty  8: string_val} with
 * metadata {1: {1: plugin_name "text"}}; a picture is 4: {1: height  2: width
 * 3: colours  4: PNG}. Hyperparameters are the metadata of the plugin "hparams", whose
 * content is
 *
 *     {3: {1: {1: name  2: value} ...  4: group  5: began, double}}     at the start
 *     {4: {1: status; SUCCESS = 1  2: ended, double}}                   at the end
 *     value  2: number double  3: text  4: bool
 *
 * Sources: tensorflow/core/util/event.proto, framework/summary.proto,
 * lib/io/record_writer.cc, tensorboard/plugins/hparams/plugin_data.proto; crc32c of RFC
 * 3720, four bits at a time. */
#include "config.h"

#include "core/loggers/tfevents.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DT_FLOAT = 1, DT_STRING = 7, SESSION_START = 1, COLOURS = 3 };
enum { VALUE_MAX = 2 * ET_METRIC_NAME }; /* bytes of a number in a summary */

/* ---- checksums ---- */

static uint32_t
crc32c(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t table[16] = {
        0x0,        0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static uint32_t
masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- records ---- */

/* A record whose data are HEAD and then BODY. */
static void
put_record(struct eti_tfevents *w, const unsigned char *head, size_t n_head,
           const unsigned char *body, size_t n_body)
{
    unsigned char frame[12], end[4];
    eti_pb_fixed(frame, n_head + n_body, 8);
    eti_pb_fixed(frame + 8, masked(crc32c(0, frame, 8)), 4);
    eti_pb_fixed(end, masked(crc32c(crc32c(0, head, n_head), body, n_body)), 4);
    fwrite(frame, 1, sizeof frame, w->file.f);
    fwrite(head, 1, n_head, w->file.f);
    fwrite(body, 1, n_body, w->file.f);
    fwrite(end, 1, sizeof end, w->file.f);
}

static unsigned char *
put_time(unsigned char *p, double t, int64_t step)
{
    p = eti_pb_double(p, 1, t);
    return eti_pb_varint(eti_pb_key(p, 2, ETI_PB_VARINT), (uint64_t)step);
}

/* Writes the summary, if anything is in it. */
static void
put_summary(struct eti_tfevents *w)
{
    unsigned char head[64], *p = put_time(head, w->t, w->step);
    if (w->used == 0)
        return;
    p = eti_pb_varint(eti_pb_key(p, 5, ETI_PB_BYTES), w->used);
    put_record(w, head, (size_t)(p - head), w->summary, w->used);
    w->used = 0;
}

/* ---- the interface ---- */

/* The seconds that the name of a file of events has; -1: it is none. */
static long long
seconds_of(const char *name)
{
    static const char start[] = "events.out.tfevents.";
    size_t n = sizeof start - 1;
    return strncmp(name, start, n) == 0 ? strtoll(name + n, NULL, 10) : -1;
}

/* Readers take files in the order of their names, and never go back to one. */
static et_status
pick_name(struct et_ctx *cx, const char *directory, double t, char *buf, size_t size,
          bool *resumed)
{
    long long seconds = (long long)t;
    char host[64] = "";
    DIR *d = opendir(directory);
    if (!d)
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", directory, strerror(errno));
    *resumed = false;
    for (struct dirent *e; (e = readdir(d));) {
        long long other = seconds_of(e->d_name);
        *resumed |= other >= 0;
        if (other >= seconds)
            seconds = other + 1;
    }
    closedir(d);
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "localhost");
    snprintf(buf, size, "events.out.tfevents.%010lld.%.40s.%d", seconds, host,
             (int)getpid());
    return ET_OK;
}

et_status
eti_tfevents_open(struct et_ctx *cx, const char *directory, double t,
                  struct eti_tfevents *w, bool *resumed)
{
    static const char version[] = "brain.Event:2";
    unsigned char head[64];
    char name[96];
    void *block;
    *w = (struct eti_tfevents){.file.cx = cx};
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(cx, ET_EIO, "cannot make %s: %s", directory, strerror(errno));
    ET_TRY(pick_name(cx, directory, t, name, sizeof name, resumed));
    ET_TRY(et_alloc(cx, ETI_OUTPUT_BUFFER, &block));
    w->summary = block;
    ET_TRY(eti_output_open(cx, directory, name, &w->file));
    unsigned char *p = eti_pb_double(head, 1, t);
    p = eti_pb_bytes(p, 3, version, sizeof version - 1);
    put_record(w, head, (size_t)(p - head), head, 0);
    return ET_OK;
}

void
eti_tfevents_start(struct eti_tfevents *w, double t, int64_t step)
{
    unsigned char head[64], session[4];
    eti_pb_varint(eti_pb_key(session, 1, ETI_PB_VARINT), SESSION_START);
    put_summary(w);
    unsigned char *p = eti_pb_bytes(put_time(head, t, step), 7, session, 2);
    put_record(w, head, (size_t)(p - head), head, 0);
}

void
eti_tfevents_at(struct eti_tfevents *w, double t, int64_t step)
{
    put_summary(w);
    w->t = t;
    w->step = step;
}

void
eti_tfevents_scalar(struct eti_tfevents *w, const char *tag, double value)
{
    unsigned char body[VALUE_MAX], *p;
    size_t n = strnlen(tag, ET_METRIC_NAME - 1);
    p = eti_pb_float(eti_pb_bytes(body, 1, tag, n), 2, value);
    if (w->used + sizeof body + 8 > ETI_OUTPUT_BUFFER)
        put_summary(w);
    p = eti_pb_bytes(w->summary + w->used, 1, body, (size_t)(p - body));
    w->used = (size_t)(p - w->summary);
}

void
eti_tfevents_text(struct eti_tfevents *w, const char *tag, const char *text)
{
    static const unsigned char metadata[] = {
        1 << 3 | ETI_PB_BYTES, 6, 1 << 3 | ETI_PB_BYTES, 4, 't', 'e', 'x', 't'};
    unsigned char head[VALUE_MAX], tensor[32], *p, *q;
    size_t n = strlen(text),
           room = ETI_OUTPUT_BUFFER - sizeof head - sizeof tensor - 16;
    n = n < room ? n : room;
    put_summary(w);
    q = eti_pb_varint(eti_pb_key(tensor, 1, ETI_PB_VARINT), DT_STRING);
    q = eti_pb_bytes(q, 2, "", 0);
    q = eti_pb_varint(eti_pb_key(q, 8, ETI_PB_BYTES), n);
    size_t n_tensor = (size_t)(q - tensor);
    p = eti_pb_bytes(head, 1, tag, strnlen(tag, ET_METRIC_NAME - 1));
    p = eti_pb_bytes(p, 9, metadata, sizeof metadata);
    p = eti_pb_varint(eti_pb_key(p, 8, ETI_PB_BYTES), n_tensor + n);
    size_t n_head = (size_t)(p - head);
    p = eti_pb_varint(eti_pb_key(w->summary, 1, ETI_PB_BYTES), n_head + n_tensor + n);
    memcpy(p, head, n_head);
    memcpy(p + n_head, tensor, n_tensor);
    memcpy(p + n_head + n_tensor, text, n);
    w->used = (size_t)(p - w->summary) + n_head + n_tensor + n;
    put_summary(w);
}

/* A summary of VALUE alone, which it releases. */
static void
put_value(struct eti_tfevents *w, struct eti_message *value)
{
    struct eti_message all = {.cx = w->file.cx};
    unsigned char head[64], *p;
    put_summary(w);
    eti_message_add(&all, 1, value);
    p = eti_pb_varint(eti_pb_key(put_time(head, w->t, w->step), 5, ETI_PB_BYTES),
                      all.n);
    if (all.status == ET_OK)
        put_record(w, head, (size_t)(p - head), all.bytes, all.n);
    else
        et_error_clear(w->file.cx); /* the numbers are there without it */
    eti_message_release(value);
    eti_message_release(&all);
}

void
eti_tfevents_image(struct eti_tfevents *w, const char *tag, int64_t width,
                   int64_t height, const void *png, size_t n)
{
    struct eti_message image = {.cx = w->file.cx}, value = image;
    eti_message_varint(&image, 1, (uint64_t)height);
    eti_message_varint(&image, 2, (uint64_t)width);
    eti_message_varint(&image, 3, COLOURS);
    eti_message_bytes(&image, 4, png, n);
    eti_message_text(&value, 1, tag);
    eti_message_add(&value, 4, &image);
    eti_message_release(&image);
    put_value(w, &value);
}

/* ---- hyperparameters ---- */

void
eti_tfevents_given(struct eti_message *session, const char *name, double number,
                   const char *text)
{
    struct eti_message value = {.cx = session->cx}, entry = value;
    if (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        eti_message_varint(&value, 4, *text == 't');
    else if (text)
        eti_message_text(&value, 3, text);
    else
        eti_message_double(&value, 2, number);
    eti_message_text(&entry, 1, name);
    eti_message_add(&entry, 2, &value);
    eti_message_add(session, 1, &entry);
    eti_message_release(&value);
    eti_message_release(&entry);
}

/* A value of the plugin, whose tensor says nothing. */
static void
put_session(struct eti_tfevents *w, const char *tag, int field,
            const struct eti_message *session)
{
    static const unsigned char nothing[] = {
        1 << 3 | ETI_PB_VARINT,
        DT_FLOAT,
        2 << 3 | ETI_PB_BYTES,
        4,
        2 << 3 | ETI_PB_BYTES,
        2,
        1 << 3 | ETI_PB_VARINT,
        1,
        5 << 3 | ETI_PB_BYTES,
        4,
        0,
        0,
        0,
        0,
    };
    struct eti_message content = {.cx = w->file.cx}, plugin = content, meta = content,
                       value = content;
    eti_message_add(&content, field, session);
    eti_message_text(&plugin, 1, "hparams");
    eti_message_add(&plugin, 2, &content);
    eti_message_add(&meta, 1, &plugin);
    eti_message_text(&value, 1, tag);
    eti_message_add(&value, 9, &meta);
    eti_message_bytes(&value, 8, nothing, sizeof nothing);
    eti_message_release(&content);
    eti_message_release(&plugin);
    eti_message_release(&meta);
    put_value(w, &value);
}

void
eti_tfevents_begin_session(struct eti_tfevents *w, struct eti_message *session,
                           const char *group)
{
    eti_message_text(session, 4, group);
    eti_message_double(session, 5, w->t);
    put_session(w, "_hparams_/session_start_info", 3, session);
}

void
eti_tfevents_end_session(struct eti_tfevents *w)
{
    enum { SUCCESS = 1 };
    struct eti_message session = {.cx = w->file.cx};
    eti_message_varint(&session, 1, SUCCESS);
    eti_message_double(&session, 2, w->t);
    put_session(w, "_hparams_/session_end_info", 4, &session);
    eti_message_release(&session);
}

void
eti_tfevents_flush(struct eti_tfevents *w)
{
    if (w->file.f)
        put_summary(w);
    eti_output_flush(&w->file);
}

void
eti_tfevents_close(struct eti_tfevents *w)
{
    if (w->file.f)
        put_summary(w);
    eti_output_close(&w->file);
    et_free(w->file.cx, w->summary);
    w->summary = NULL;
}
