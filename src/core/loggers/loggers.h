/* SPDX-License-Identifier: Apache-2.0 */
/* loggers.h: what loggers share: opening a file of the run directory, writing
 * values. */
#ifndef ETI_LOGGERS_H
#define ETI_LOGGERS_H

#include <stdio.h>

#include "core/trainer/state.h"
#include "etude/callback.h"

#define ET_LOGGER(name) extern const struct et_callback_class et_logger_##name;
#include "core/loggers/loggers.def"
#undef ET_LOGGER

enum { ETI_OUTPUT_BUFFER = 64 << 10 }; /* bytes; some 100 lines of metrics */

/* A file of the run directory, written through a large buffer and readable by its owner
 * alone. What cannot be written is reported once: a full disk ends no run. One that is
 * removed meanwhile is made again at the next flush, with what was in it, and that is
 * reported. */
struct eti_output {
    struct et_ctx *cx;
    FILE *f; /* NULL: not open */
    char name[96];
    bool failed; /* and reported */
    void *buffer;
    const char *path; /* behind that */
};
/* Appends to DIRECTORY/NAME. EINVAL without a directory, EIO when it cannot be
 * opened. */
ET_NODISCARD et_status eti_output_open(struct et_ctx *cx, const char *directory,
                                       const char *name, struct eti_output *out);
/* Before the first line of this run: are there others? One that a crash cut off is
 * ended, so that the next is whole. */
bool eti_output_holds_lines(struct eti_output *f);
void eti_output_flush(struct eti_output *f);
/* What flushing does for a file that was removed, for who flushes by himself. */
void eti_output_restore(struct eti_output *f);
/* Bytes of the file, without those that are still in the buffer. */
int64_t eti_output_bytes(const struct eti_output *f);
void eti_output_close(struct eti_output *f);

/* The option "record_interval" of a logger whose options are ITS_OPTIONS, with that
 * field: unset it is the recipe's (assemble.c). */
#define ETI_RECORD_INTERVAL(its_options)                                               \
    {                                                                                  \
        .name = "record_interval", .type = ET_OPT_TIME,                                \
        .offset = offsetof(its_options, record_interval), .flags = ET_OPT_OPTIONAL,    \
        .units = 1u << ET_TIME_BATCH | 1u << ET_TIME_SECOND, .max = 86400,             \
        .help = "one line of training for so long, instead of the recipe's",           \
    }

/* What LOG holds at EVENT, BATCH_END or EVAL_END, as a record of now; at AFTER_LOAD,
 * that a run goes on, and nothing of LOG. Borrows from LOG and STATE. */
struct et_record eti_record(enum et_event event, const struct et_state *state,
                            const struct et_log *log);
/* jsonl.c, csv.c: a record as they write it. */
void eti_jsonl_put(FILE *f, const struct et_record *r);
void eti_csv_header(FILE *f);
void eti_csv_put(FILE *f, const struct et_record *r);
/* "algorithm_traces/MixUp/after_dataloader: 1", for A that acted at EVENT, in BUF of
 * ETI_TRACE bytes, which it returns. */
enum { ETI_TRACE = 160 };
const char *eti_trace_text(const struct et_algorithm *a, enum et_event event,
                           char *buf);
/* A number for people: whole ones as they are, others with 4 decimals, or 4 digits
 * where those would not do. Returns BUF. */
const char *eti_number_text(double value, char *buf, size_t n);
/* What a run was given that its numbers do not tell: the I-th as NAME, of
 * ET_METRIC_NAME bytes, and VALUE, of 32; false past the last. */
bool eti_hyperparameter(const struct et_state *s, int i, char *name, char *value);

/* What "%.*f" of DECIMALS, up to 12, and "%.9g" print of VALUE, into BUF of ETI_NUMBER
 * bytes; returns its length. */
enum { ETI_NUMBER = 340 };
int eti_put_fixed(char *buf, double value, int decimals);
int eti_put_nine(char *buf, double value);
/* A number as JSON: whole ones below 2^53 as they are, others with 9 significant
 * digits, which gives an f32 back exactly; null for what is not finite, as JSON has no
 * word for it. */
void eti_json_number(FILE *f, double value);
void eti_json_string(FILE *f, const char *text);
/* {"name":value,...} */
void eti_json_metrics(FILE *f, const struct et_log_entry *entry, int n);

#endif
